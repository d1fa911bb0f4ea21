#include "upstream/caller_limits.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace waybill::upstream {
namespace {

using namespace std::chrono_literals;
using std::chrono::days;
using std::chrono::hours;
using std::chrono::sys_days;

constexpr std::uint64_t kDollar = 1'000'000'000;

// 30 January 2026, 12:00 UTC, and so much later.
CallerTime at(Duration later = {}) {
  const UtcTime noon = sys_days{std::chrono::January / 30 / 2026} + hours(12);
  return {TimePoint{hours(1)} + later, noon + later};
}

CallerDemand demand(std::uint64_t tokens = 0, std::uint64_t nano_usd = 0) { return {"m", tokens, nano_usd}; }

void spend(CallerAccount& account, std::uint64_t nano_usd, CallerTime time = at()) {
  auto pass = account.admit(demand(), time);
  ASSERT_TRUE(pass);
  pass->settle(0, nano_usd, time);
}

TEST(CallerLimits, NothingIsLimitedByDefault) {
  CallerAccount account("key", {});
  std::vector<CallerPass> passes;
  for (int i = 0; i < 1000; ++i) {
    auto pass = account.admit(demand(1'000'000, 1000 * kDollar), at());
    ASSERT_TRUE(pass);
    EXPECT_FALSE(pass->over_budget());
    passes.push_back(std::move(*pass));
  }
  EXPECT_EQ(account.in_flight(), 1000U);
  EXPECT_EQ(account.rates(at().now).requests.limit, 0U);
}

TEST(CallerLimits, SayWhichWasExceededAndWhenItFrees) {
  CallerAccount account("team", {.requests_per_minute = 2, .tokens_per_minute = 100, .models = {}});
  auto first = account.admit(demand(90), at());
  ASSERT_TRUE(first);
  const auto tokens = account.admit(demand(40), at());
  ASSERT_FALSE(tokens);
  EXPECT_EQ(tokens.error().limit, CallerLimit::kTokens);
  EXPECT_EQ(tokens.error().error.code, ErrorCode::kRateLimited);
  EXPECT_EQ(tokens.error().error.retry_after, 18s);
  EXPECT_NE(tokens.error().error.message.find("team"), std::string::npos);
  auto second = account.admit(demand(0), at());
  ASSERT_TRUE(second);
  const auto requests = account.admit(demand(0), at());
  ASSERT_FALSE(requests);
  EXPECT_EQ(requests.error().limit, CallerLimit::kRequests);
  EXPECT_EQ(requests.error().error.retry_after, 30s);
  EXPECT_TRUE(account.admit(demand(0), at(30s)));
}

TEST(CallerLimits, ARefusedRequestBurnsNothing) {
  CallerAccount account("key", {.requests_per_minute = 10,
                                .tokens_per_minute = 100,
                                .concurrency = 2,
                                .models = {"m"},
                                .budget_per_day = 1});
  const auto before = account.rates(at().now);
  EXPECT_FALSE(account.admit({"other", 1, 0}, at()));
  EXPECT_FALSE(account.admit(demand(1, 2 * kDollar), at()));
  auto most = account.admit(demand(100), at());
  ASSERT_TRUE(most);
  EXPECT_FALSE(account.admit(demand(1), at()));
  EXPECT_EQ(account.in_flight(), 1U);
  {
    const CallerPass dropped = std::move(*most);
  }
  EXPECT_EQ(account.in_flight(), 0U);
  const auto after = account.rates(at().now);
  EXPECT_EQ(after.requests.remaining, before.requests.remaining);
  EXPECT_EQ(after.tokens.remaining, before.tokens.remaining);
  EXPECT_EQ(account.spending(at().utc).today, 0U);
  EXPECT_TRUE(account.admit(demand(1, kDollar / 2), at()));
}

TEST(CallerLimits, ConcurrencyIsGivenBack) {
  CallerAccount account("key", {.concurrency = 2, .models = {}});
  auto first = account.admit(demand(), at());
  auto second = account.admit(demand(), at());
  const auto third = account.admit(demand(), at());
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().limit, CallerLimit::kConcurrency);
  EXPECT_GT(third.error().error.retry_after, 0s);
  first->settle(0, 0, at(10s));
  EXPECT_TRUE(account.admit(demand(), at(10s)));
  auto again = account.admit(demand(), at(10s));
  const auto full = account.admit(demand(), at(10s));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().error.retry_after, 5s);  // a call takes 10 s, and there are two
}

TEST(CallerLimits, OnlyTheModelsThatAreListed) {
  CallerAccount account("key", {.models = {"a", "auto"}});
  EXPECT_TRUE(account.may_use("auto"));
  EXPECT_FALSE(account.may_use("b"));
  const auto refused = account.admit({"b", 0, 0}, at());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().limit, CallerLimit::kModel);
  EXPECT_EQ(refused.error().error.code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(refused.error().error.field, "model");
}

TEST(CallerLimits, AHardBudgetHoldsUntilTheNextDay) {
  CallerAccount account("key", {.models = {}, .budget_per_day = 2});
  spend(account, 2 * kDollar);
  const auto refused = account.admit(demand(), at());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().limit, CallerLimit::kBudgetDay);
  EXPECT_EQ(refused.error().error.code, ErrorCode::kQuotaExceeded);
  EXPECT_EQ(refused.error().error.retry_after, 12h);
  EXPECT_FALSE(account.admit(demand(), at(12h - 1ns)));
  EXPECT_TRUE(account.admit(demand(), at(12h)));
}

TEST(CallerLimits, AMonthsBudgetHoldsUntilTheNextMonth) {
  CallerAccount account("key", {.models = {}, .budget_per_day = 2, .budget_per_month = 3});
  spend(account, 2 * kDollar);
  spend(account, kDollar, at(24h));
  const auto refused = account.admit(demand(), at(24h));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().limit, CallerLimit::kBudgetMonth);
  EXPECT_EQ(refused.error().error.retry_after, 12h);  // from noon of 31 January
  EXPECT_TRUE(account.admit(demand(), at(36h)));
  EXPECT_EQ(account.spending(at(36h).utc).this_month, 0U);
}

TEST(CallerLimits, CallsUnderWayCountTowardsABudget) {
  CallerAccount account("key", {.models = {}, .budget_per_day = 1});
  auto first = account.admit(demand(0, 6 * kDollar / 10), at());
  ASSERT_TRUE(first);
  EXPECT_FALSE(account.admit(demand(0, kDollar / 2), at()));
  first->settle(0, kDollar / 10, at());
  EXPECT_TRUE(account.admit(demand(0, kDollar / 2), at()));
  EXPECT_EQ(account.spending(at().utc).today, kDollar / 10);
}

TEST(CallerLimits, AWarningLetsCallsThrough) {
  CallerAccount account("key", {.models = {}, .budget_per_day = 1, .budget_mode = config::BudgetMode::kWarn});
  spend(account, 3 * kDollar);
  const auto pass = account.admit(demand(), at());
  ASSERT_TRUE(pass);
  EXPECT_TRUE(pass->over_budget());
}

TEST(CallerLimits, AWallClockThatIsSetBackGivesNoNewBudget) {
  CallerAccount account("key", {.models = {}, .budget_per_day = 1});
  spend(account, kDollar);
  EXPECT_FALSE(account.admit(demand(), at(-48h)));
}

TEST(CallerLimits, TokensAreSettled) {
  CallerAccount account("key", {.tokens_per_minute = 100, .models = {}});
  auto pass = account.admit(demand(80), at());
  pass->settle(30, 0, at());
  pass->settle(30, 0, at());  // only once
  EXPECT_EQ(account.rates(at().now).tokens.remaining, 70U);
  auto more = account.admit(demand(10), at());
  more->settle(60, 0, at());
  EXPECT_EQ(account.rates(at().now).tokens.remaining, 10U);
}

TEST(CallerLimits, OtherLimitsKeepWhatIsUsed) {
  CallerAccount account("key", {.requests_per_minute = 10, .models = {}, .budget_per_day = 1});
  spend(account, kDollar);
  account.configure({.requests_per_minute = 20, .models = {}, .budget_per_day = 5}, at().now);
  EXPECT_EQ(account.rates(at().now).requests.remaining, 19U);
  EXPECT_EQ(account.spending(at().utc).today, kDollar);
  EXPECT_TRUE(account.admit(demand(0, 4 * kDollar), at()));
  EXPECT_FALSE(account.admit(demand(0, 5 * kDollar), at()));
}

TEST(CallerLimits, BalanceWhenThreadsShareThem) {
  CallerAccount account("key", {.concurrency = 3, .models = {}, .budget_per_day = 1'000'000});
  std::atomic<unsigned> under_way{0}, most{0};
  std::atomic<std::uint64_t> spent{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        auto pass = account.admit(demand(10, 7), at());
        if (!pass) continue;
        const unsigned now = ++under_way;
        for (unsigned seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        --under_way;
        if (i % 3 == 0) continue;
        pass->settle(5, 3, at());
        spent += 3;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most.load(), 3U);
  EXPECT_EQ(account.in_flight(), 0U);
  EXPECT_EQ(account.spending(at().utc).today, spent.load());
}

}  // namespace
}  // namespace waybill::upstream
