#include "upstream/balancer.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

namespace waybill::upstream {
namespace {

using namespace std::chrono_literals;

class BalancerTest : public ::testing::Test {
 protected:
  PoolMember& add(const std::string& name, std::size_t priority = 0, std::size_t weight = 1) {
    pool_.push_back({std::make_shared<Target>(nullptr, "m", name, health_), priority, weight});
    return pool_.back();
  }
  Choice pick(std::uint64_t affinity = 0) {
    return choose(pool_, tried_, affinity, random_ += 0x9E3779B97F4A7C15U, now_);
  }
  std::map<std::string, int> count(int times, std::uint64_t affinity = 0) {
    std::map<std::string, int> counts;
    for (int i = 0; i < times; ++i) ++counts[pick(affinity).target->name];
    return counts;
  }

  const config::ProviderHealth health_{
      .failures = 2, .cooldown = 5s, .max_cooldown = 20s, .interval = {}, .path = {}};
  std::vector<PoolMember> pool_;
  std::vector<const Target*> tried_;
  std::uint64_t random_ = 1;
  TimePoint now_{1h};
};

TEST_F(BalancerTest, SharesByWeight) {
  add("a", 0, 3);
  add("b", 0, 1);
  add("c", 0, 0);
  pool_.reserve(8);
  const auto counts = count(4000);
  // Two are drawn of two: it is the load that decides between them, which is equal, and then the first drawn.
  EXPECT_NEAR(counts.at("a"), 3000, 150);
  EXPECT_NEAR(counts.at("b"), 1000, 150);
  EXPECT_FALSE(counts.contains("c"));
}

TEST_F(BalancerTest, PrefersWhoHasLessToDo) {
  add("busy");
  add("idle");
  for (int i = 0; i < 5; ++i) pool_[0].target->load.begin();
  EXPECT_EQ(count(100).at("idle"), 100);
}

TEST_F(BalancerTest, PrefersWhoIsFaster) {
  add("slow");
  add("fast");
  pool_[0].target->load.answered(900ms);
  pool_[1].target->load.answered(30ms);
  EXPECT_EQ(count(100).at("fast"), 100);
}

TEST_F(BalancerTest, DoesNotFloodWhoHasNotAnsweredYet) {
  add("known");
  add("fresh");
  pool_[0].target->load.answered(100ms);
  for (int i = 0; i < 100; ++i) pick().target->load.begin();
  EXPECT_NEAR(pool_[1].target->load.in_flight(), 50, 1);
}

TEST_F(BalancerTest, DoesNotSayThatATargetIsFreeWhileItIsProbed) {
  add("a");
  pool_[0].target->circuit.failed(now_);
  pool_[0].target->circuit.failed(now_);
  now_ += 5s;
  EXPECT_NE(pick().target, nullptr);
  EXPECT_GT(pick().soonest, now_);
}

TEST_F(BalancerTest, GoesToTheNextPriorityWhenNoneIsLeft) {
  add("first");
  add("second", 1);
  EXPECT_EQ(pick().target->name, "first");
  tried_.push_back(pool_[0].target.get());
  EXPECT_EQ(pick().target->name, "second");
  tried_.push_back(pool_[1].target.get());
  EXPECT_EQ(pick().target, nullptr);
  EXPECT_EQ(pick().soonest, TimePoint::max());
}

TEST_F(BalancerTest, LeavesAloneWhoAskedForIt) {
  add("a");
  pool_[0].target->circuit.cool(now_ + 30s);
  EXPECT_EQ(pick().target, nullptr);
  EXPECT_EQ(pick().soonest, now_ + 30s);
  now_ += 30s;
  EXPECT_NE(pick().target, nullptr);
}

TEST_F(BalancerTest, KeepsConversationsWithTheirTarget) {
  for (const char* name : {"a", "b", "c", "d"}) add(name);
  std::map<std::uint64_t, std::string> before;
  std::set<std::string> used;
  for (std::uint64_t conversation = 1; conversation <= 200; ++conversation) {
    before[conversation] = pick(conversation).target->name;
    used.insert(before[conversation]);
    EXPECT_EQ(pick(conversation).target->name, before[conversation]);
  }
  EXPECT_EQ(used.size(), 4U);
  // Who leaves takes only his own with him.
  const std::string gone = pool_.back().target->name;
  pool_.pop_back();
  for (const auto& [conversation, name] : before) {
    if (name != gone) {
      EXPECT_EQ(pick(conversation).target->name, name);
    }
  }
}

TEST_F(BalancerTest, BreaksAffinityBeforeATargetIsOverloaded) {
  for (const char* name : {"a", "b", "c", "d"}) add(name);
  Target* favourite = pick(7).target;
  for (int i = 0; i < 8; ++i) favourite->load.begin();
  EXPECT_NE(pick(7).target, favourite);
}

TEST_F(BalancerTest, ChoosesAmongAllOfALargePool) {
  for (int i = 0; i < 100; ++i) add(std::to_string(i).c_str());
  std::set<std::string> used;
  for (std::uint64_t conversation = 1; conversation <= 3000; ++conversation) {
    used.insert(pick().target->name);
    used.insert(pick(conversation).target->name);
  }
  EXPECT_EQ(used.size(), 100U);
}

TEST_F(BalancerTest, OpensAfterFailuresInARowAndLooksAgainOnce) {
  add("a");
  Circuit& circuit = pool_[0].target->circuit;
  circuit.failed(now_);
  circuit.succeeded();
  circuit.failed(now_);
  EXPECT_EQ(circuit.state(now_), CircuitState::kClosed);
  circuit.failed(now_);
  EXPECT_EQ(circuit.state(now_), CircuitState::kOpen);
  EXPECT_EQ(pick().target, nullptr);
  now_ += 5s;
  EXPECT_NE(pick().target, nullptr);  // the probe
  EXPECT_EQ(pick().target, nullptr);  // and no other
  circuit.failed(now_, CircuitPass::kProbe);
  now_ += 6s;
  EXPECT_EQ(pick().target, nullptr) << "the second time is longer";
  now_ += 4s;
  EXPECT_NE(pick().target, nullptr);
  circuit.succeeded();
  EXPECT_EQ(circuit.state(now_), CircuitState::kClosed);
}

}  // namespace
}  // namespace waybill::upstream
