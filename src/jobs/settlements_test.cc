#include "jobs/settlements.h"

#include <gtest/gtest.h>

namespace waybill::jobs {
namespace {

Settlement finished(const Uuid& id, std::size_t body) {
  Settlement settlement;
  settlement.lease = {id, 1};
  store::Finish finish;
  finish.lease = settlement.lease;
  finish.result.body = std::string(body, 'x');
  settlement.how = std::move(finish);
  return settlement;
}

TEST(Settlements, WhatCouldNotBeWrittenWaits) {
  Settlements settlements(1U << 20);
  const Uuid a = uuid_v7(), b = uuid_v7();
  settlements.add(finished(a, 10));
  settlements.add(finished(b, 10));
  EXPECT_EQ(settlements.waiting(), 0U);
  EXPECT_EQ(settlements.keep(a), 0U);
  EXPECT_EQ(settlements.keep(a), 0U);
  EXPECT_EQ(settlements.waiting(), 1U);
  settlements.remove(b);
  EXPECT_EQ(settlements.size(), 1U);
  const auto taken = settlements.take(10);
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0]->lease.id, a);
  EXPECT_EQ(settlements.waiting(), 0U);
  EXPECT_TRUE(settlements.take(10).empty());  // it is being written
  settlements.keep(a);
  settlements.add(finished(a, 20));  // of a later lease
  EXPECT_EQ(settlements.waiting(), 0U);
  settlements.keep(a);
  settlements.remove(a);
  EXPECT_EQ(settlements.size(), 0U);
  EXPECT_EQ(settlements.waiting(), 0U);
  EXPECT_EQ(settlements.bytes(), 0U);
}

TEST(Settlements, EventsAreWrittenOnce) {
  Settlements settlements(1U << 20);
  Settlement settlement = finished(uuid_v7(), 10);
  const Uuid id = settlement.lease.id;
  settlement.events = "data: 1\n\n";
  settlements.add(std::move(settlement));
  const std::size_t before = settlements.bytes();
  settlements.events_written(id);
  EXPECT_EQ(settlements.bytes(), before - 9);
  settlements.keep(id);
  EXPECT_EQ(settlements.take(1)[0]->events, "");
}

TEST(Settlements, DropTheLargestAnswersBeyondTheirBound) {
  Settlements settlements(10'000);
  const Uuid small = uuid_v7(), large = uuid_v7(), last = uuid_v7();
  settlements.add(finished(small, 1000));
  settlements.add(finished(large, 6000));
  EXPECT_EQ(settlements.keep(small), 0U);
  EXPECT_EQ(settlements.keep(large), 0U);
  settlements.add(finished(last, 3000));
  EXPECT_EQ(settlements.keep(last), 1U);
  EXPECT_LE(settlements.bytes(), 10'000U);
  EXPECT_EQ(settlements.waiting(), 3U);
  for (const Settlement* each : settlements.take(10)) {
    const auto* failed = std::get_if<store::Fail>(&each->how);
    EXPECT_EQ(failed != nullptr, each->lease.id == large);
    if (failed == nullptr) continue;
    EXPECT_EQ(failed->error.code, "result_lost");
    EXPECT_EQ(failed->lease.id, large);
    EXPECT_EQ(failed->lease.fence, 1U);
  }
  for (const Uuid& id : {small, large, last}) settlements.remove(id);
  EXPECT_EQ(settlements.bytes(), 0U);
}

}  // namespace
}  // namespace waybill::jobs
