// A limit over time: so much at once, refilled evenly.
#pragma once

#include "base/clock.h"

namespace waybill {

// The token bucket that providers describe their limits by. What is taken may be returned; an amount larger
// than the whole bucket is taken from a full one, which is then in debt. Not thread-safe: whoever has several
// keeps them under one lock, so that all or none is taken.
class TokenBucket {
 public:
  TokenBucket() = default;  // no limit
  // Full at first. Both above zero.
  TokenBucket(double capacity, double per_second) noexcept
      : level_(capacity), capacity_(capacity), per_second_(per_second) {}
  // What `per_minute` means; 0: no limit.
  [[nodiscard]] static TokenBucket of_minute(double per_minute) noexcept {
    return per_minute > 0 ? TokenBucket(per_minute, per_minute / 60) : TokenBucket();
  }

  [[nodiscard]] bool has_limit() const noexcept { return capacity_ > 0; }
  // How long until `amount` may be taken, where others take `before` first. Zero: now.
  [[nodiscard]] Duration wait(double amount, TimePoint now, double before = 0) const noexcept;
  void take(double amount, TimePoint now) noexcept;
  void give_back(double amount) noexcept;

  // What a provider says of its own bucket.
  void set(double level, double capacity, double per_second, TimePoint now) noexcept;
  // Another limit; what has been used of the last stays used.
  void resize(double capacity, double per_second, TimePoint now) noexcept;

  [[nodiscard]] double capacity() const noexcept { return capacity_; }
  [[nodiscard]] double level(TimePoint now) const noexcept;  // below zero: in debt
  // Until it is full.
  [[nodiscard]] Duration reset(TimePoint now) const noexcept { return wait(capacity_, now); }

 private:
  double level_ = 0;     // at `at_`
  double capacity_ = 0;  // 0: no limit
  double per_second_ = 0;
  TimePoint at_{};
};

}  // namespace waybill
