#include "upstream/circuit.h"

#include <algorithm>
#include <bit>

namespace waybill::upstream {
namespace {

std::int64_t ticks(TimePoint at) noexcept { return at.time_since_epoch().count(); }
TimePoint at(std::int64_t ticks) noexcept { return TimePoint(Duration(ticks)); }

// A probe that never reports (its process thread died with it, say) must not close the target for ever.
constexpr Duration kProbePatience = std::chrono::minutes(10);

// The error rate that opens it, for targets that answer often enough never to fail many times in a row.
constexpr std::uint32_t kLastCalls = (1U << 20U) - 1;
constexpr std::size_t kMostFailed = 10;

}  // namespace

std::string_view to_string(CircuitState state) noexcept {
  switch (state) {
    case CircuitState::kClosed:
      return "closed";
    case CircuitState::kOpen:
      return "open";
    case CircuitState::kHalfOpen:
      return "half_open";
  }
  return "unknown";
}

bool Circuit::is_callable(TimePoint now) const noexcept {
  if (ticks(now) < cooling_.load(std::memory_order_relaxed)) return false;
  const std::int64_t blocked = blocked_.load(std::memory_order_relaxed);
  if (blocked == kNever) return true;
  if (ticks(now) < blocked) return false;
  return !probing_.load(std::memory_order_relaxed) || ticks(now) > blocked + kProbePatience.count();
}

CircuitPass Circuit::allow(TimePoint now) {
  if (!is_callable(now)) return CircuitPass::kNo;
  if (blocked_.load(std::memory_order_relaxed) == kNever) return CircuitPass::kCall;
  const std::lock_guard lock(mutex_);
  if (!is_callable(now)) return CircuitPass::kNo;
  if (blocked_.load(std::memory_order_relaxed) == kNever) return CircuitPass::kCall;
  probing_.store(true, std::memory_order_relaxed);
  return CircuitPass::kProbe;
}

TimePoint Circuit::when() const noexcept {
  return at(std::max(cooling_.load(std::memory_order_relaxed), blocked_.load(std::memory_order_relaxed)));
}

void Circuit::succeeded() noexcept {
  // Written only where it changes something: the line stays shared between the loops.
  if (failures_.load(std::memory_order_relaxed) != 0) failures_.store(0, std::memory_order_relaxed);
  // An update that another thread's overwrites is one call less in a rate.
  const std::uint32_t recent = recent_.load(std::memory_order_relaxed);
  if (recent != 0) recent_.store(recent << 1U, std::memory_order_relaxed);
  if (blocked_.load(std::memory_order_relaxed) == kNever) return;
  const std::lock_guard lock(mutex_);
  open_for_ = Duration::zero();
  probing_.store(false, std::memory_order_relaxed);
  blocked_.store(kNever, std::memory_order_relaxed);
}

void Circuit::failed(TimePoint now, CircuitPass pass) {
  const unsigned failures = failures_.fetch_add(1, std::memory_order_relaxed) + 1;
  const std::lock_guard lock(mutex_);
  const bool probed = pass == CircuitPass::kProbe;
  if (probed) probing_.store(false, std::memory_order_relaxed);
  const bool open = blocked_.load(std::memory_order_relaxed) != kNever;
  const std::uint32_t recent = (recent_.load(std::memory_order_relaxed) << 1U) | 1U;
  recent_.store(recent, std::memory_order_relaxed);
  const bool often =
      static_cast<std::size_t>(std::popcount(recent & kLastCalls)) >= std::max(kMostFailed, health_.failures);
  if (!probed && (open || (failures < health_.failures && !often)))
    return;  // or went out before it was opened
  recent_.store(0, std::memory_order_relaxed);
  open_for_ =
      open_for_ == Duration::zero() ? health_.cooldown : std::min(open_for_ * 2, health_.max_cooldown);
  blocked_.store(ticks(now + open_for_), std::memory_order_relaxed);
}

void Circuit::abandoned(CircuitPass pass) noexcept {
  if (pass == CircuitPass::kProbe) probing_.store(false, std::memory_order_relaxed);
}

void Circuit::cool(TimePoint until) noexcept {
  std::int64_t before = cooling_.load(std::memory_order_relaxed);
  while (before < ticks(until) &&
         !cooling_.compare_exchange_weak(before, ticks(until), std::memory_order_relaxed)) {
  }
}

CircuitState Circuit::state(TimePoint now) const noexcept {
  if (ticks(now) < cooling_.load(std::memory_order_relaxed)) return CircuitState::kOpen;
  const std::int64_t blocked = blocked_.load(std::memory_order_relaxed);
  if (blocked == kNever) return CircuitState::kClosed;
  return probing_.load(std::memory_order_relaxed) || ticks(now) >= blocked ? CircuitState::kHalfOpen
                                                                           : CircuitState::kOpen;
}

}  // namespace waybill::upstream
