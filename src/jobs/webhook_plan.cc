#include "jobs/webhook_plan.h"

#include <algorithm>

namespace waybill::jobs {
namespace {

constexpr Duration kLongestRetryAfter = std::chrono::hours(24);
constexpr double kJitter = 0.2;

}  // namespace

WebhookPlan plan_webhook(const WebhookAttempt& attempt, std::uint32_t before,
                         std::span<const Duration> schedule, double random) noexcept {
  using Next = WebhookPlan::Next;
  if (attempt.status / 100 == 2) return {.next = Next::kDelivered};
  if (attempt.status == 410) return {.next = Next::kGone};
  if (attempt.superseded || before >= schedule.size()) return {.next = Next::kDead};
  const Duration planned = schedule[before];
  const auto more = static_cast<Duration::rep>(static_cast<double>(planned.count()) * kJitter * random);
  const Duration asked = std::min(attempt.retry_after.value_or(Duration::zero()), kLongestRetryAfter);
  return {.next = Next::kAgain, .wait = std::max(planned + Duration(more), asked)};
}

std::string_view to_string(WebhookPlan::Next next) noexcept {
  switch (next) {
    case WebhookPlan::Next::kDelivered:
      return "delivered";
    case WebhookPlan::Next::kAgain:
      return "again";
    case WebhookPlan::Next::kGone:
      return "gone";
    case WebhookPlan::Next::kDead:
      return "dead";
  }
  return "unknown";
}

}  // namespace waybill::jobs
