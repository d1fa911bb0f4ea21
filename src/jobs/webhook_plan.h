// What follows an attempt to deliver a webhook.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace waybill::jobs {

// What came of one attempt: a status, or why there was none.
struct WebhookAttempt {
  unsigned status = 0;
  std::string error;                    // a sentence; empty where there is a status
  std::optional<Duration> retry_after;  // what the receiver asks for
  bool superseded = false;              // it was not made: what it would say is no longer so
};

struct WebhookPlan {
  enum class Next : std::uint8_t {
    kDelivered,  // any 2xx
    kAgain,
    kGone,  // 410: nothing more may go to this address
    kDead,  // the schedule has ended, or it was superseded
  };
  Next next = Next::kDelivered;
  Duration wait{};  // kAgain: until then
};

// `before`: the attempts that were made before this one; the first comes at once and is none of the schedule.
// A wait of it is made longer by up to a fifth, `random` (0 to 1) of that, so that what failed together does
// not come again together. A Retry-After that is longer holds, up to a day.
[[nodiscard]] WebhookPlan plan_webhook(const WebhookAttempt& attempt, std::uint32_t before,
                                       std::span<const Duration> schedule, double random) noexcept;

[[nodiscard]] std::string_view to_string(WebhookPlan::Next next) noexcept;  // "delivered", "again", ...

}  // namespace waybill::jobs
