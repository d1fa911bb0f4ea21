#include "upstream/rate_limit.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace waybill::upstream {
namespace {

using std::chrono::seconds;

const TimePoint kStart{std::chrono::hours(1)};

double remaining(const RateLimit& limit, RateKind kind, TimePoint now = kStart) {
  return limit.level(kind, now).remaining;
}

TEST(RateLimit, SaysWhichLimitIsUsedUpAndWhenItFrees) {
  RateLimit limit(60, 600);
  auto first = limit.reserve(500, kStart);
  ASSERT_TRUE(first);
  first->sent();
  const auto second = limit.reserve(150, kStart);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, RateKind::kTokens);
  EXPECT_EQ(second.error().wait, seconds(5));
  EXPECT_TRUE(limit.reserve(150, kStart + seconds(5)));

  RateLimit requests(1, 0);
  auto only = requests.reserve(1'000'000, kStart);
  ASSERT_TRUE(only);
  const auto other = requests.reserve(1, kStart + seconds(20));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, RateKind::kRequests);
  EXPECT_NEAR(waybill::seconds(other.error().wait), 40, 1e-6);  // a rate of 1/60 is rounded
}

TEST(RateLimit, ARefusalTakesNothing) {
  RateLimit limit(10, 100);
  const auto taken = limit.reserve(60, kStart);
  ASSERT_TRUE(taken);
  EXPECT_FALSE(limit.reserve(60, kStart));
  EXPECT_DOUBLE_EQ(remaining(limit, RateKind::kRequests), 9);
  EXPECT_DOUBLE_EQ(remaining(limit, RateKind::kTokens), 40);
}

TEST(RateLimit, WhatWasNotSentIsGivenBack) {
  RateLimit limit(10, 100);
  {
    const auto taken = limit.reserve(60, kStart);
  }
  EXPECT_DOUBLE_EQ(remaining(limit, RateKind::kRequests), 10);
  EXPECT_DOUBLE_EQ(remaining(limit, RateKind::kTokens), 100);
  {
    auto taken = limit.reserve(60, kStart);
    taken->sent();
  }
  EXPECT_DOUBLE_EQ(remaining(limit, RateKind::kRequests), 9);
  EXPECT_DOUBLE_EQ(remaining(limit, RateKind::kTokens), 40);
}

TEST(RateLimit, AnEstimateIsSettled) {
  RateLimit limit(10, 1000);
  auto less = limit.reserve(600, kStart);
  less->sent();
  less->settle(100, kStart);
  EXPECT_DOUBLE_EQ(remaining(limit, RateKind::kTokens), 900);
  auto more = limit.reserve(100, kStart);
  more->sent();
  more->settle(400, kStart);
  more->settle(400, kStart);  // only once
  EXPECT_DOUBLE_EQ(remaining(limit, RateKind::kTokens), 500);
}

TEST(RateLimit, BelievesWhatTheProviderSays) {
  RateLimit limit(0, 0);
  EXPECT_EQ(limit.level(RateKind::kTokens, kStart).limit, 0);
  auto taken = limit.reserve(10, kStart);
  taken->sent();
  taken->answered({.requests = ToldRate{60, 59, seconds(1)}, .tokens = ToldRate{1000, 100, seconds(54)}},
                  kStart);
  EXPECT_DOUBLE_EQ(remaining(limit, RateKind::kRequests), 59);
  const auto refused = limit.reserve(150, kStart);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, RateKind::kTokens);
  EXPECT_EQ(refused.error().wait, seconds(3));  // 900 in 54 s
}

TEST(RateLimit, ALimitByTheDayIsRefilledByTheDay) {
  RateLimit limit(0, 0);
  auto taken = limit.reserve(10, kStart);
  taken->sent();
  taken->answered({.requests = ToldRate{14'400, 0, seconds(86'400)}, .tokens = {}}, kStart);
  const auto refused = limit.reserve(1, kStart);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().wait, seconds(6));
}

TEST(RateLimit, CallsUnderWayAreTakenOffWhatRemains) {
  RateLimit limit(0, 0);
  auto answered = limit.reserve(10, kStart);
  auto under_way = limit.reserve(30, kStart);
  answered->sent();
  under_way->sent();
  const ToldRates told{.requests = ToldRate{100, 50, seconds(30)},
                       .tokens = ToldRate{1000, 500, seconds(30)}};
  answered->answered(told, kStart);
  EXPECT_DOUBLE_EQ(remaining(limit, RateKind::kRequests), 49);
  EXPECT_DOUBLE_EQ(remaining(limit, RateKind::kTokens), 470);
  under_way->answered(told, kStart);
  EXPECT_DOUBLE_EQ(remaining(limit, RateKind::kTokens), 500);
}

TEST(RateLimit, TheTighterLimitHolds) {
  RateLimit limit(10, 0);
  auto taken = limit.reserve(1, kStart);
  taken->sent();
  taken->answered({.requests = ToldRate{1000, 900, seconds(6)}, .tokens = {}}, kStart);
  EXPECT_DOUBLE_EQ(limit.level(RateKind::kRequests, kStart).limit, 10);
  EXPECT_DOUBLE_EQ(remaining(limit, RateKind::kRequests), 9);
}

TEST(RateLimit, NewLimitsKeepWhatWasUsed) {
  RateLimit limit(10, 100);
  auto taken = limit.reserve(60, kStart);
  taken->sent();
  limit.configure(20, 0, kStart);
  EXPECT_DOUBLE_EQ(remaining(limit, RateKind::kRequests), 19);
  EXPECT_EQ(limit.level(RateKind::kTokens, kStart).limit, 0);
}

TEST(RateLimit, ReadsWhatHeadersSay) {
  const auto rate = read_told_rate("60", "59", seconds(1));
  ASSERT_TRUE(rate);
  EXPECT_EQ(rate->limit, 60U);
  EXPECT_EQ(rate->remaining, 59U);
  EXPECT_FALSE(read_told_rate("", "59", seconds(1)));
  EXPECT_FALSE(read_told_rate("60", "x", seconds(1)));
  EXPECT_FALSE(read_told_rate("60", "-1", seconds(1)));
  EXPECT_FALSE(read_told_rate("0", "0", seconds(1)));
  EXPECT_FALSE(read_told_rate("60", "59", std::nullopt));
}

TEST(RateLimit, GivesNoMoreThanThereIsToManyThreads) {
  RateLimit limit(1000, 0);
  std::atomic<int> granted{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        auto taken = limit.reserve(1, kStart);
        if (!taken) continue;
        if (i % 2 == 0) continue;  // given back
        taken->sent();
        ++granted;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(granted.load(), 1000);
  EXPECT_DOUBLE_EQ(remaining(limit, RateKind::kRequests), 1000 - granted.load());
}

}  // namespace
}  // namespace waybill::upstream
