#include "upstream/retry_budget.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace waybill::upstream {
namespace {

using std::chrono::seconds;

const TimePoint kStart{std::chrono::hours(1)};

config::Gateway limits(double share, std::size_t floor) {
  config::Gateway gateway;
  gateway.retry_budget = share;
  gateway.retry_floor = floor;
  return gateway;
}

int retries(RetryBudget& budget, const config::Gateway& gateway, TimePoint now) {
  int taken = 0;
  while (taken < 10'000 && budget.take_retry(now, gateway)) ++taken;
  return taken;
}

TEST(RetryBudget, AllowsAShareOfTheCallsAndAFloor) {
  RetryBudget budget;
  EXPECT_EQ(retries(budget, limits(0.2, 3), kStart), 3);
  RetryBudget busy;
  for (int i = 0; i < 100; ++i) busy.count_call(kStart);
  EXPECT_EQ(retries(busy, limits(0.2, 3), kStart), 23);
  EXPECT_EQ(retries(busy, limits(0, 0), kStart), 0);
}

TEST(RetryBudget, LooksAtTheLastTenSeconds) {
  RetryBudget budget;
  const config::Gateway gateway = limits(0.5, 0);
  for (int i = 0; i < 10; ++i) budget.count_call(kStart);
  EXPECT_EQ(retries(budget, gateway, kStart + seconds(9)), 5);
  for (int i = 0; i < 4; ++i) budget.count_call(kStart + seconds(10));
  EXPECT_EQ(retries(budget, gateway, kStart + seconds(10)), 0);  // five of four calls are out
  EXPECT_EQ(retries(budget, gateway, kStart + seconds(19)), 2);
  EXPECT_EQ(retries(budget, gateway, kStart + seconds(60)), 0);
}

TEST(RetryBudget, GivesNoMoreToManyThreads) {
  RetryBudget budget;
  for (int i = 0; i < 1000; ++i) budget.count_call(kStart);
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] { taken += retries(budget, limits(0.2, 10), kStart); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken.load(), 210);
}

}  // namespace
}  // namespace waybill::upstream
