// Time, replaceable so that a test can own it.
#pragma once

#include <atomic>
#include <chrono>

namespace waybill {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

// A monotonic clock. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual TimePoint now() const noexcept = 0;
};

class SteadyClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override { return std::chrono::steady_clock::now(); }
};

// A clock that stands still until a test moves it.
class FakeClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override { return TimePoint{Duration{now_ns_.load()}}; }
  void advance(Duration by) noexcept { now_ns_.fetch_add(by.count()); }

 private:
  std::atomic<Duration::rep> now_ns_{1'000'000'000};
};

[[nodiscard]] inline double seconds(Duration d) noexcept { return std::chrono::duration<double>(d).count(); }

}  // namespace waybill
