#include "upstream/lane_queue.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "upstream/held_executor_test.h"

namespace waybill::upstream {
namespace {

using namespace std::chrono_literals;

// One queue, one loop, and what calls got to hear.
class LaneQueueTest : public ::testing::Test {
 protected:
  void make(const LaneQueueOptions& options) { queue_.emplace("p", options); }
  ~LaneQueueTest() override {
    loop_.run();
    slots_.clear();
    if (queue_) queue_->stop();
    loop_.run();
  }

  // The slot or the answer is kept under `name`.
  Result<LaneQueue::Admission> enter(const std::string& name, Lane lane, const std::string& caller = "",
                                     Duration patience = 1h) {
    auto admission =
        queue_->enter({lane, caller, now_ + patience, &loop_}, now_, [this, name](Result<LaneSlot> slot) {
          order_.push_back(name);
          if (slot) {
            slots_[name] = *std::move(slot);
          } else {
            errors_[name] = slot.error();
          }
        });
    if (admission && admission->slot) slots_[name] = std::move(admission->slot);
    return admission;
  }
  bool interactive(const std::string& name) { return enter(name, Lane::kInteractive).has_value(); }
  bool batch(const std::string& name, const std::string& caller = "") {
    return enter(name, Lane::kBatch, caller).has_value();
  }
  // One that holds a slot gives it back after `held`.
  void release(const std::string& name, Duration held = 0ms) {
    now_ += held;
    slots_.at(name).release(now_);
    slots_.erase(name);
    loop_.run();
  }
  bool has_slot(const std::string& name) const { return slots_.contains(name); }
  // Gives back the slot of whoever was served last, until nobody waits.
  std::vector<std::string> drain(const std::string& first) {
    release(first);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const std::string name = order_[i];
      release(name);
    }
    return order_;
  }

  TimePoint now_{1h};
  std::optional<LaneQueue> queue_;
  HeldExecutor loop_;
  std::map<std::string, LaneSlot> slots_;
  std::map<std::string, Error> errors_;
  std::vector<std::string> order_;
};

TEST_F(LaneQueueTest, GrantsAtOnceWhileSlotsAreFree) {
  make({.slots = 2});
  EXPECT_TRUE(interactive("a") && interactive("b") && interactive("c"));
  EXPECT_TRUE(has_slot("a") && has_slot("b"));
  EXPECT_FALSE(has_slot("c"));
  release("a");
  EXPECT_TRUE(has_slot("c"));
}

TEST_F(LaneQueueTest, WithoutALimitEverythingIsGranted) {
  make({.slots = 0});
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(batch(std::to_string(i)));
  EXPECT_EQ(slots_.size(), 100U);
}

TEST_F(LaneQueueTest, InteractiveCallsGoBeforeBatchCalls) {
  make({.slots = 1});
  EXPECT_TRUE(interactive("first") && batch("b1") && batch("b2") && interactive("i1") && interactive("i2"));
  EXPECT_EQ(drain("first"), (std::vector<std::string>{"i1", "i2", "b1", "b2"}));
}

TEST_F(LaneQueueTest, BatchCallsLeaveAShareOfTheSlotsFree) {
  make({.slots = 16});
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(batch(std::to_string(i)));
  EXPECT_EQ(queue_->stats(now_).batch.in_use, 14U);
  EXPECT_TRUE(interactive("a") && interactive("b"));
  EXPECT_TRUE(has_slot("a") && has_slot("b"));
  release("a");
  EXPECT_EQ(queue_->stats(now_).batch.in_use, 14U) << "a slot of the interactive share went to batch";
}

TEST_F(LaneQueueTest, CallersTakeTurnsInTheBatchLane) {
  make({.slots = 1});
  EXPECT_TRUE(interactive("first") && batch("a1", "a") && batch("a2", "a") && batch("a3", "a") &&
              batch("b1", "b") && batch("c1", "c") && batch("b2", "b"));
  EXPECT_EQ(drain("first"), (std::vector<std::string>{"a1", "b1", "c1", "a2", "b2", "a3"}));
}

TEST_F(LaneQueueTest, ABatchCallThatHasAgedIsServedThoughInteractiveCallsKeepComing) {
  make({.slots = 1, .max_wait = 1h, .aging = 10s});
  EXPECT_TRUE(interactive("i0") && batch("old"));
  int served = 0;
  for (; served < 100 && !has_slot("old"); ++served) {
    EXPECT_TRUE(interactive("i" + std::to_string(served + 1)));
    release("i" + std::to_string(served), 1s);
  }
  EXPECT_GE(served, 10) << "it came before it had aged";
  EXPECT_LE(served, 18) << "it starved";
}

TEST_F(LaneQueueTest, ALongQueueOfAgedBatchCallsTakesAnEighthOfTheSlots) {
  make({.slots = 1, .max_wait = 24h, .aging = 10s});
  EXPECT_TRUE(interactive("first"));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(batch("b" + std::to_string(i)));
  now_ += 1min;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(interactive("i" + std::to_string(i)));
  const std::vector<std::string> order = drain("first");
  ASSERT_EQ(order.size(), 200U);
  EXPECT_EQ(std::ranges::count_if(order.begin(), order.begin() + 80,
                                  [](const auto& name) { return name[0] == 'b'; }),
            10);
}

TEST_F(LaneQueueTest, AFullQueueRefusesAndSaysWhichLimit) {
  make({.slots = 1, .max_queue = 2});
  EXPECT_TRUE(interactive("a") && interactive("b") && batch("c"));
  const auto refused = enter("d", Lane::kInteractive);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOverloaded);
  EXPECT_NE(refused.error().message.find("limits.max_queue is 2"), std::string::npos)
      << refused.error().message;
  EXPECT_GT(refused.error().retry_after, 0s);
}

TEST_F(LaneQueueTest, WhatWouldWaitPastItsDeadlineOrTheLimitIsRefusedAtOnce) {
  make({.slots = 2, .max_wait = 20s});
  EXPECT_TRUE(interactive("a"));
  release("a", 10s);  // so a slot is held for ten seconds, and one of two frees every five
  EXPECT_TRUE(interactive("a") && interactive("b"));
  EXPECT_EQ(queue_->stats(now_).interactive.predicted_wait, 5s);
  EXPECT_TRUE(enter("c", Lane::kInteractive, "", 6s));
  const auto late = enter("d", Lane::kInteractive, "", 8s);  // about ten seconds
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(late.error().retry_after, 2s);
  EXPECT_NE(late.error().message.find("the call has 8.0 s left"), std::string::npos) << late.error().message;
  EXPECT_TRUE(interactive("d") && interactive("e"));
  const auto long_wait = enter("f", Lane::kInteractive);
  ASSERT_FALSE(long_wait);
  EXPECT_NE(long_wait.error().message.find("limits.max_wait is 20.0 s"), std::string::npos)
      << long_wait.error().message;
}

TEST_F(LaneQueueTest, ALongQueueOfOneCallerSaysLittleOfTheWaitOfAnother) {
  make({.slots = 2, .batch_slots = 1, .max_wait = 1h});
  EXPECT_TRUE(batch("a", "one"));
  release("a", 1s);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(batch(std::to_string(i), "one"));
  EXPECT_TRUE(enter("x", Lane::kBatch, "other", 5s));
  EXPECT_FALSE(enter("y", Lane::kBatch, "one", 5s));
}

TEST_F(LaneQueueTest, ACallThatWaitedTooLongIsToldThatItWasOurQueue) {
  make({.slots = 1, .max_wait = 20s});
  EXPECT_TRUE(interactive("a") && enter("soon", Lane::kInteractive, "", 5s) && batch("late"));
  EXPECT_LE(queue_->next_due(), now_ + 1s);
  now_ += 4900ms;
  queue_->expire(now_);
  EXPECT_EQ(queue_->next_due(), now_ + 100ms);
  loop_.run();
  EXPECT_TRUE(errors_.empty());
  now_ += 100ms;
  queue_->expire(now_);
  loop_.run();
  EXPECT_EQ(errors_["soon"].code, ErrorCode::kDeadlineExceeded);
  EXPECT_NE(errors_["soon"].message.find("gateway's queue"), std::string::npos);
  EXPECT_FALSE(errors_.contains("late"));
  now_ += 15s;
  queue_->expire(now_);
  loop_.run();
  EXPECT_EQ(errors_["late"].code, ErrorCode::kOverloaded);
  EXPECT_EQ(queue_->next_due(), TimePoint::max());
  EXPECT_EQ(enter("past", Lane::kInteractive, "", 0s).error().code, ErrorCode::kDeadlineExceeded);
}

TEST_F(LaneQueueTest, NothingIsGrantedToOneWhoseDeadlineHasPassed) {
  make({.slots = 1});
  EXPECT_TRUE(interactive("a") && enter("late", Lane::kInteractive, "", 5s) && interactive("b"));
  release("a", 6s);
  EXPECT_EQ(errors_["late"].code, ErrorCode::kDeadlineExceeded);
  EXPECT_TRUE(has_slot("b"));
}

TEST_F(LaneQueueTest, CallsWaitForTheLimitsPerMinuteInTheSameOrder) {
  make({.requests_per_minute = 60, .max_wait = 1min});
  for (int i = 0; i < 60; ++i) EXPECT_TRUE(interactive("at once " + std::to_string(i)));
  EXPECT_EQ(slots_.size(), 60U);
  EXPECT_TRUE(batch("b") && interactive("i"));
  EXPECT_EQ(queue_->stats(now_).interactive.predicted_wait, 2s);
  now_ += 1s;
  queue_->expire(now_);
  loop_.run();
  EXPECT_TRUE(has_slot("i"));
  EXPECT_FALSE(has_slot("b"));
  now_ += 900ms;
  queue_->expire(now_);
  EXPECT_EQ(queue_->next_due(), now_ + 100ms);
  now_ += 100ms;
  queue_->expire(now_);
  loop_.run();
  EXPECT_TRUE(has_slot("b"));
}

TEST_F(LaneQueueTest, ASmallCallDoesNotGoBeforeALargeOneThatWaitsForTokens) {
  make({.tokens_per_minute = 600, .max_wait = 2min});
  const auto enter_with = [this](const std::string& name, Lane lane, std::uint64_t tokens) {
    auto admission =
        queue_->enter({lane, "", now_ + 1h, &loop_, tokens}, now_, [this, name](Result<LaneSlot> slot) {
          order_.push_back(name);
          slots_[name] = *std::move(slot);
        });
    if (admission && admission->slot) slots_[name] = std::move(admission->slot);
    return admission;
  };
  EXPECT_TRUE(enter_with("first", Lane::kInteractive, 550));
  EXPECT_TRUE(enter_with("large", Lane::kInteractive, 300));
  EXPECT_TRUE(enter_with("small", Lane::kInteractive, 10));
  EXPECT_TRUE(enter_with("batch", Lane::kBatch, 10));
  EXPECT_FALSE(has_slot("small") || has_slot("batch"));
  EXPECT_TRUE(enter_with("whole", Lane::kBatch, 1000));  // once the bucket is full
  const auto too_late = enter_with("later", Lane::kBatch, 500);
  ASSERT_FALSE(too_late);
  EXPECT_EQ(too_late.error().code, ErrorCode::kRateLimited);
  EXPECT_EQ(queue_->next_due(), now_ + 250ms);
  // The first was never sent: what was reserved for it serves the others.
  slots_.erase("first");
  loop_.run();
  EXPECT_EQ(order_, (std::vector<std::string>{"large", "small", "batch"}));
}

TEST_F(LaneQueueTest, WhatWasSentIsNotGivenBackAndIsSettled) {
  make({.tokens_per_minute = 600});
  auto admission =
      queue_->enter({Lane::kInteractive, "", now_ + 1h, &loop_, 600}, now_, [](Result<LaneSlot>) {});
  admission->slot.rates().sent();
  admission->slot.rates().settle(200, now_);
  admission->slot.release(now_);
  EXPECT_EQ(queue_->level(RateKind::kTokens, now_).remaining, 400);
}

TEST_F(LaneQueueTest, WhatTheProviderSaysIsLeftHoldsCallsBack) {
  make({});
  auto admission = queue_->enter({Lane::kInteractive, "", now_ + 1h, &loop_}, now_, [](Result<LaneSlot>) {});
  admission->slot.rates().sent();
  admission->slot.rates().answered({.requests = ToldRate{60, 0, 60s}, .tokens = std::nullopt}, now_);
  EXPECT_TRUE(interactive("next"));
  EXPECT_FALSE(has_slot("next"));
  now_ += 1s;
  queue_->expire(now_);
  loop_.run();
  EXPECT_TRUE(has_slot("next"));
}

TEST_F(LaneQueueTest, ALimitThatFreesUnnoticedDoesNotLetNewcomersPass) {
  make({.slots = 2});
  auto admission = queue_->enter({Lane::kInteractive, "", now_ + 1h, &loop_}, now_, [](Result<LaneSlot>) {});
  admission->slot.rates().sent();
  admission->slot.rates().answered({.requests = ToldRate{60, 0, 60s}, .tokens = std::nullopt}, now_);
  EXPECT_TRUE(interactive("a"));
  EXPECT_FALSE(has_slot("a"));
  now_ += 4s;
  EXPECT_TRUE(interactive("b"));
  loop_.run();
  EXPECT_TRUE(has_slot("a"));
  EXPECT_FALSE(has_slot("b"));
}

TEST_F(LaneQueueTest, ACancelledWaiterIsNotAnswered) {
  make({.slots = 1});
  EXPECT_TRUE(interactive("a"));
  const auto waits = enter("b", Lane::kBatch, "c");
  EXPECT_TRUE(queue_->cancel(waits->waiter, now_));
  EXPECT_FALSE(queue_->cancel(waits->waiter, now_));
  release("a");
  EXPECT_TRUE(order_.empty());
  EXPECT_EQ(queue_->stats(now_).batch.waiting, 0U);
}

TEST_F(LaneQueueTest, ASlotThatCrossedWithACancelGoesToTheNext) {
  make({.slots = 1});
  EXPECT_TRUE(interactive("a"));
  const auto gone = queue_->enter({Lane::kInteractive, "", now_ + 1h, &loop_}, now_, [](Result<LaneSlot>) {});
  EXPECT_TRUE(interactive("c"));
  slots_.at("a").release(now_);
  EXPECT_FALSE(queue_->cancel(gone->waiter, now_)) << "it has been granted";
  loop_.run();
  EXPECT_TRUE(has_slot("c"));
}

TEST_F(LaneQueueTest, ASlotWhoseLoopDropsItsWorkIsNotLost) {
  make({.slots = 1});
  EXPECT_TRUE(interactive("a") && interactive("b"));
  slots_.at("a").release(now_);
  loop_.drop();
  EXPECT_EQ(queue_->stats(now_).interactive.in_use, 0U);
}

TEST_F(LaneQueueTest, StoppingAnswersAllThatWait) {
  make({.slots = 1});
  EXPECT_TRUE(interactive("a") && interactive("b") && batch("c"));
  queue_->stop();
  loop_.run();
  EXPECT_EQ(errors_["b"].code, ErrorCode::kShuttingDown);
  EXPECT_EQ(errors_["c"].code, ErrorCode::kShuttingDown);
  EXPECT_EQ(enter("d", Lane::kInteractive).error().code, ErrorCode::kShuttingDown);
}

TEST_F(LaneQueueTest, MoreSlotsAreUsedAsSoonAsTheyAreConfigured) {
  make({.slots = 1});
  EXPECT_TRUE(interactive("a") && interactive("b") && interactive("c"));
  queue_->configure({.slots = 3}, now_);
  loop_.run();
  EXPECT_EQ(slots_.size(), 3U);
}

TEST_F(LaneQueueTest, OnlyCallsThatRanToTheirEndCountTowardsPredictions) {
  make({.slots = 1});
  EXPECT_TRUE(interactive("a"));
  release("a", 4s);
  EXPECT_TRUE(interactive("a"));
  now_ += 1h;
  slots_.clear();
  EXPECT_EQ(queue_->stats(now_).hold, 4s);
}

}  // namespace
}  // namespace waybill::upstream
