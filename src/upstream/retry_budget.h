// How many calls may be repeated, so that trouble at a provider never multiplies the load on it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/clock.h"

namespace waybill::upstream {

// Of the last ten seconds: `share` of the calls, and `floor` in any case. Thread-safe.
class RetryBudget {
 public:
  RetryBudget(double share, std::size_t floor) : share_(share), floor_(floor) {}

  void count_call(TimePoint now);
  // Takes one retry; false: there is none left.
  [[nodiscard]] bool take_retry(TimePoint now);

 private:
  static constexpr std::size_t kSlots = 10;  // of a second each
  struct Slot {
    std::int64_t second = -1;
    std::uint32_t calls = 0, retries = 0;
  };
  Slot& slot(TimePoint now);

  const double share_;
  const std::size_t floor_;
  std::mutex mutex_;  // guards slots_
  std::array<Slot, kSlots> slots_{};
};

}  // namespace waybill::upstream
