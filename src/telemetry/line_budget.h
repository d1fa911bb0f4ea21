// So many lines a second, and a count of what was left out.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace waybill::telemetry {

// A second's worth may come at once, after that they are spread (the generic cell rate algorithm of ITU-T
// I.371: it keeps only the time at which the next is due). Thread-safe, no lock.
class LineBudget {
 public:
  explicit LineBudget(double per_second)
      : interval_us_(per_second > 0 ? static_cast<std::int64_t>(1e6 / per_second) : 0),
        none_(!(per_second > 0)) {}

  // Nothing: leave this line out. Else how many were left out since the last that was not.
  std::optional<std::uint64_t> take(std::int64_t now_us) noexcept {
    constexpr std::int64_t kBurstUs = 1'000'000;
    // The wall clock was set back: nothing would be logged until it is there again. More than the times of
    // threads that come at once are apart.
    constexpr std::int64_t kStepUs = 10'000'000;
    const std::int64_t most_ahead_us = interval_us_ > kBurstUs ? interval_us_ : kBurstUs;
    std::int64_t due = due_us_.load(std::memory_order_relaxed);
    while (!none_) {
      const bool ahead = due > now_us && due - now_us <= most_ahead_us + kStepUs;
      const std::int64_t from = ahead ? due : now_us;
      if (from + interval_us_ - now_us > most_ahead_us) break;
      if (due_us_.compare_exchange_weak(due, from + interval_us_, std::memory_order_relaxed))
        return left_out_.exchange(0, std::memory_order_relaxed);
    }
    left_out_.fetch_add(1, std::memory_order_relaxed);
    return std::nullopt;
  }

 private:
  const std::int64_t interval_us_;
  const bool none_;
  std::atomic<std::int64_t> due_us_{0};
  std::atomic<std::uint64_t> left_out_{0};
};

}  // namespace waybill::telemetry
