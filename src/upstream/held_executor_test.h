// For tests: an event loop that stands still.
#pragma once

#include <deque>
#include <functional>
#include <utility>

#include "base/executor.h"

namespace waybill::upstream {

// Runs what was posted when the test says so.
class HeldExecutor final : public Executor {
 public:
  void post(std::move_only_function<void()> work) override { work_.push_back(std::move(work)); }
  void run() {
    while (!work_.empty()) run_one();
  }
  void run_one() {
    auto work = std::move(work_.front());
    work_.pop_front();
    work();
  }
  [[nodiscard]] bool empty() const { return work_.empty(); }
  void drop() { work_.clear(); }

 private:
  std::deque<std::move_only_function<void()>> work_;
};

}  // namespace waybill::upstream
