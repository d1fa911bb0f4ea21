#include "upstream/retry_budget.h"

namespace waybill::upstream {
namespace {

std::int64_t second_of(TimePoint now) {
  return std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
}

}  // namespace

RetryBudget::Slot& RetryBudget::slot(TimePoint now) {
  const std::int64_t second = second_of(now);
  Slot& slot = slots_[static_cast<std::size_t>(second) % kSlots];
  if (slot.second != second) slot = {.second = second};
  return slot;
}

void RetryBudget::count_call(TimePoint now) {
  const std::lock_guard lock(mutex_);
  ++slot(now).calls;
}

bool RetryBudget::take_retry(TimePoint now, const config::Gateway& limits) {
  const std::lock_guard lock(mutex_);
  Slot& current = slot(now);
  const std::int64_t oldest = current.second - static_cast<std::int64_t>(kSlots);
  std::uint64_t calls = 0, retries = 0;
  for (const Slot& each : slots_) {
    if (each.second <= oldest) continue;
    calls += each.calls;
    retries += each.retries;
  }
  const double allowed =
      limits.retry_budget * static_cast<double>(calls) + static_cast<double>(limits.retry_floor);
  if (static_cast<double>(retries) + 1 > allowed) return false;
  ++current.retries;
  return true;
}

}  // namespace waybill::upstream
