#include "jobs/webhook_plan.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace waybill::jobs {
namespace {

using namespace std::chrono_literals;
using Next = WebhookPlan::Next;

const std::vector<Duration> kSchedule = {5s, 5min, 30min};

WebhookPlan after(unsigned status, std::uint32_t before = 0, std::optional<Duration> retry_after = {},
                  double random = 0) {
  return plan_webhook({.status = status, .error = {}, .retry_after = retry_after, .superseded = false},
                      before, kSchedule, random);
}

TEST(WebhookPlan, WhatEachStatusMeans) {
  for (const unsigned status : {200U, 201U, 202U, 204U, 299U})
    EXPECT_EQ(after(status).next, Next::kDelivered) << status;
  for (const unsigned status :
       {0U, 100U, 300U, 301U, 302U, 307U, 400U, 401U, 404U, 429U, 500U, 502U, 503U, 504U})
    EXPECT_EQ(after(status).next, Next::kAgain) << status;
  EXPECT_EQ(after(410).next, Next::kGone);
  EXPECT_EQ(after(410, 9).next, Next::kGone);
}

TEST(WebhookPlan, FollowsTheScheduleToItsEnd) {
  EXPECT_EQ(after(500, 0).wait, 5s);
  EXPECT_EQ(after(500, 1).wait, 5min);
  EXPECT_EQ(after(500, 2).wait, 30min);
  EXPECT_EQ(after(500, 3).next, Next::kDead);
  EXPECT_EQ(after(0, 3).next, Next::kDead);
  EXPECT_EQ(after(200, 3).next, Next::kDelivered);
  EXPECT_EQ(plan_webhook({.status = 500, .error = {}, .retry_after = {}, .superseded = false}, 0, {}, 0).next,
            Next::kDead);
}

TEST(WebhookPlan, WhatIsNoLongerSoIsNotTriedAgain) {
  const WebhookAttempt none{.status = 0, .error = "tried again", .retry_after = {}, .superseded = true};
  EXPECT_EQ(plan_webhook(none, 0, kSchedule, 0).next, Next::kDead);
}

TEST(WebhookPlan, SpreadsThemByAFifthAndNeverEarlier) {
  EXPECT_EQ(after(500, 0, {}, 1).wait, 6s);
  EXPECT_EQ(after(500, 0, {}, 0.5).wait, 5500ms);
}

TEST(WebhookPlan, ARetryAfterHoldsWhereItIsLongerUpToADay) {
  EXPECT_EQ(after(503, 0, 60s).wait, 60s);
  EXPECT_EQ(after(429, 1, 60s).wait, 5min);
  EXPECT_EQ(after(503, 0, 240h).wait, 24h);
  EXPECT_EQ(after(503, 3, 60s).next, Next::kDead);
}

}  // namespace
}  // namespace waybill::jobs
