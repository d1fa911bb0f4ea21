#include "base/token_bucket.h"

#include <algorithm>
#include <cmath>

namespace waybill {

double TokenBucket::level(TimePoint now) const noexcept {
  return now <= at_ ? level_ : std::min(capacity_, level_ + seconds(now - at_) * per_second_);
}

Duration TokenBucket::wait(double amount, TimePoint now, double before) const noexcept {
  if (!has_limit()) return Duration::zero();
  const double missing = before + std::min(amount, capacity_) - level(now);
  // What rounding leaves is less than a nanosecond's worth.
  if (missing <= per_second_ * 1e-9) return Duration::zero();
  constexpr double kLongest = 366.0 * 86'400;
  return Duration(static_cast<Duration::rep>(std::ceil(std::min(kLongest, missing / per_second_) * 1e9)));
}

void TokenBucket::take(double amount, TimePoint now) noexcept {
  if (!has_limit()) return;
  level_ = level(now) - amount;
  at_ = std::max(at_, now);
}

void TokenBucket::give_back(double amount) noexcept { level_ = std::min(capacity_, level_ + amount); }

void TokenBucket::set(double level, double capacity, double per_second, TimePoint now) noexcept {
  level_ = std::min(level, capacity);
  capacity_ = capacity;
  per_second_ = per_second;
  at_ = now;
}

void TokenBucket::resize(double capacity, double per_second, TimePoint now) noexcept {
  const double used = has_limit() ? capacity_ - level(now) : 0;
  set(capacity - used, capacity, per_second, now);
}

}  // namespace waybill
