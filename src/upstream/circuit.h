// Whether a target may be called: it has not failed too often, and has not asked to be left alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "base/clock.h"
#include "config/upstream_config.h"

namespace waybill::upstream {

enum class CircuitState : std::uint8_t {
  kClosed,    // it is called
  kOpen,      // it is not, for a while
  kHalfOpen,  // one call is out to look
};
[[nodiscard]] std::string_view to_string(CircuitState state) noexcept;  // "closed", ...

enum class CircuitPass : std::uint8_t {
  kNo,     // no call may go out now
  kCall,   // one of many
  kProbe,  // the one that looks whether the target is well again
};

// Failures in a row, or half of the last twenty calls, open it for a time that doubles with each probe that
// fails; a Retry-After leaves the target alone for just that long, whatever else is known of it. Thread-safe;
// the healthy path is a few relaxed loads.
class Circuit {
 public:
  explicit Circuit(const config::ProviderHealth& health) : health_(health) {}

  // Whether a call may go out now, and when() otherwise. Takes the place of the probe where one is due: who
  // was allowed must report, with what it was given, so that a call that went out before does not end the
  // probe of another.
  [[nodiscard]] CircuitPass allow(TimePoint now);
  // Whether allow() would say so, without taking anything.
  [[nodiscard]] bool is_callable(TimePoint now) const noexcept;
  // When it may next be called; `now` or before: at once.
  [[nodiscard]] TimePoint when() const noexcept;

  void succeeded() noexcept;
  void failed(TimePoint now, CircuitPass pass = CircuitPass::kCall);
  // The call came to nothing that says anything of the target: it was cancelled.
  void abandoned(CircuitPass pass) noexcept;
  // The provider asks to be left alone until then.
  void cool(TimePoint until) noexcept;

  // The provider has asked for it.
  [[nodiscard]] bool is_cooling(TimePoint now) const noexcept {
    return now.time_since_epoch().count() < cooling_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] CircuitState state(TimePoint now) const noexcept;
  [[nodiscard]] unsigned failures() const noexcept { return failures_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::int64_t kNever = 0;
  const config::ProviderHealth health_;
  std::atomic<unsigned> failures_{0};     // in a row
  std::atomic<std::uint32_t> recent_{0};  // a bit for each of the last calls, the newest lowest; 1: failed
  std::atomic<std::int64_t> blocked_{kNever};  // until then, of the steady clock; kNever: not
  std::atomic<std::int64_t> cooling_{kNever};
  std::atomic<bool> probing_{false};
  std::mutex mutex_;  // guards the next
  Duration open_for_{};
};

}  // namespace waybill::upstream
