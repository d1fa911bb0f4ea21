// How many calls may be repeated, so that trouble at a provider never multiplies the load on it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/clock.h"
#include "config/upstream_config.h"

namespace waybill::upstream {

// Of the last ten seconds: retry_budget of the calls, and retry_floor in any case. Thread-safe.
class RetryBudget {
 public:
  void count_call(TimePoint now);
  // Takes one retry; false: there is none left.
  [[nodiscard]] bool take_retry(TimePoint now, const config::Gateway& limits);

 private:
  static constexpr std::size_t kSlots = 10;  // of a second each
  struct Slot {
    std::int64_t second = -1;
    std::uint32_t calls = 0, retries = 0;
  };
  Slot& slot(TimePoint now);

  std::mutex mutex_;  // guards slots_
  std::array<Slot, kSlots> slots_{};
};

}  // namespace waybill::upstream
