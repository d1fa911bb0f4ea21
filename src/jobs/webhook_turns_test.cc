#include "jobs/webhook_turns.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace waybill::jobs {
namespace {

using namespace std::chrono_literals;

const TimePoint kStart{100s};

class TurnsTest : public ::testing::Test {
 protected:
  bool add(std::string host, std::uint64_t delivery, TimePoint until = kStart + 30s) {
    store::ClaimDeliveries::Due due;
    due.delivery = delivery;
    return turns_.add({.host = std::move(host), .due = std::move(due), .until = until});
  }
  // Begins all that may begin: their hosts, in order.
  std::vector<std::string> begin(TimePoint now = kStart) {
    std::vector<std::string> hosts;
    while (auto turn = turns_.next(now)) hosts.push_back(turn->host);
    return hosts;
  }

  WebhookTurns turns_{8};
};

using Hosts = std::vector<std::string>;

TEST_F(TurnsTest, AHostHasAQuarterAtMost) {
  for (std::uint64_t i = 0; i < 10; ++i) add("a", i);
  EXPECT_EQ(begin(), (Hosts{"a", "a"}));
  add("b", 20);
  EXPECT_EQ(begin(), (Hosts{"b"}));
  turns_.ended("a");
  EXPECT_EQ(begin(), (Hosts{"a"}));
  EXPECT_EQ(turns_.out(), 3U);
}

TEST_F(TurnsTest, HostsTakeTurnsAndEachItsOwnInOrder) {
  turns_.set_concurrency(100);
  for (std::uint64_t i = 0; i < 3; ++i) {
    for (const char* host : {"a", "b", "c"}) add(host, i);
  }
  EXPECT_EQ(begin(), (Hosts{"a", "b", "c", "a", "b", "c", "a", "b", "c"}));
  for (std::uint64_t i = 7; i < 10; ++i) add("a", i);
  for (std::uint64_t i = 7; i < 10; ++i) EXPECT_EQ(turns_.next(kStart)->due.delivery, i);
}

TEST_F(TurnsTest, NoMoreAreOutThanMayBe) {
  for (const char* host : {"a", "b", "c", "d", "e", "f"}) {
    add(host, 1);
    add(host, 2);
  }
  EXPECT_EQ(begin().size(), 8U);
  turns_.ended("c");
  EXPECT_EQ(begin().size(), 1U);
}

TEST_F(TurnsTest, OneHostCannotFillTheRoom) {
  std::size_t taken = 0;
  while (add("a", taken)) ++taken;
  EXPECT_LT(taken, 20U);
  EXPECT_GT(turns_.room(), 30U);
  EXPECT_TRUE(add("b", 1));
}

TEST_F(TurnsTest, ThoseWhoseClaimRunsOutAreDroppedAndLeaveRoom) {
  const std::size_t room = turns_.room();
  add("a", 1, kStart + 1s);
  add("a", 2, kStart + 3s);
  EXPECT_EQ(turns_.room(), room - 2);
  EXPECT_EQ(turns_.next(kStart + 2s)->due.delivery, 2U);
  EXPECT_EQ(turns_.room(), room);
}

TEST_F(TurnsTest, AHostThatAskedForItIsLeftAloneForAMinuteAtMost) {
  add("a", 1, kStart + 1h);
  add("b", 1, kStart + 1h);
  EXPECT_EQ(begin(), (Hosts{"a", "b"}));
  turns_.pause("a", 24h, kStart);
  turns_.ended("a");
  turns_.ended("b");
  add("a", 2, kStart + 1h);
  add("b", 2, kStart + 1h);
  EXPECT_EQ(begin(kStart + 1s), (Hosts{"b"}));
  EXPECT_EQ(begin(kStart + 61s), (Hosts{"a"}));
}

}  // namespace
}  // namespace waybill::jobs
