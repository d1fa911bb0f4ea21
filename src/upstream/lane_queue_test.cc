#include "upstream/lane_queue.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include <gtest/gtest.h>

namespace waybill::upstream {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

// Runs what was posted when the test says so.
class HeldExecutor final : public Executor {
 public:
  void post(std::move_only_function<void()> work) override { work_.push_back(std::move(work)); }
  void run() {
    while (!work_.empty()) run_one();
  }
  void run_one() {
    auto work = std::move(work_.front());
    work_.pop_front();
    work();
  }
  [[nodiscard]] bool empty() const { return work_.empty(); }
  void drop() { work_.clear(); }

 private:
  std::deque<std::move_only_function<void()>> work_;
};

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

TEST_F(LaneQueueTest, DuringAHoldOffNothingIsGranted) {
  make({.slots = 2});
  queue_->hold_until(now_ + 3s);
  queue_->hold_until(now_ + 1s);
  EXPECT_TRUE(interactive("a") && interactive("b"));
  EXPECT_TRUE(slots_.empty());
  const auto refused = enter("c", Lane::kInteractive, "", 2s);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRateLimited);
  EXPECT_EQ(refused.error().retry_after, 3s);
  now_ += 2900ms;
  queue_->expire(now_);
  EXPECT_EQ(queue_->next_due(), now_ + 100ms);
  now_ += 100ms;
  loop_.run();
  EXPECT_TRUE(slots_.empty());
  queue_->expire(now_);
  loop_.run();
  EXPECT_TRUE(has_slot("a") && has_slot("b"));
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

TEST_F(LaneQueueTest, AHoldOffThatEndsUnnoticedDoesNotLetNewcomersPass) {
  make({.slots = 1});
  queue_->hold_until(now_ + 3s);
  EXPECT_TRUE(interactive("a"));
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

// Random operations against a plain account of what must hold.
class RandomOperations {
 public:
  explicit RandomOperations(std::uint64_t seed) : random_(seed) {
    options_ = {.slots = pick(6),
                .batch_slots = pick(4),
                .requests_per_minute = pick(2) * (20 + pick(100)),
                .tokens_per_minute = pick(2) * (2000 + pick(9000)),
                .max_queue = 1 + pick(40),
                .max_wait = Duration(1s) * (1 + pick(60)),
                .aging = Duration(1s) * pick(20)};
    queue_.emplace("p", options_);
  }

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      step();
      check();
    }
    loop_.run();
    queue_->stop();
    while (!loop_.empty() || !held_.empty()) {
      loop_.run();
      held_.clear();
    }
    for (const auto& [name, call] : calls_) ASSERT_EQ(call.answers, 1) << "call " << name;
    const auto stats = queue_->stats(now_);
    ASSERT_EQ(stats.interactive.in_use + stats.batch.in_use + stats.interactive.waiting + stats.batch.waiting,
              0U);
  }

 private:
  struct Call {
    int answers = 0;  // granted at once, refused, cancelled in time, or `done`
    LaneQueue::WaiterId waiter = 0;
    TimePoint deadline;
  };

  std::size_t pick(std::size_t below) { return random_() % below; }

  void step() {
    switch (pick(10)) {
      case 0:
      case 1:
      case 2:
      case 3:
        enter();
        break;
      case 4:
      case 5:
        if (!held_.empty()) {
          auto held = held_.begin() + static_cast<std::ptrdiff_t>(pick(held_.size()));
          if (pick(2) == 0) held->rates().sent();
          if (pick(4) != 0) held->release(now_);
          held_.erase(held);
        }
        break;
      case 6:
        cancel();
        break;
      case 7:
        now_ += milliseconds(pick(4000));
        if (pick(2) == 0) queue_->expire(now_);
        break;
      case 8:
        if (!loop_.empty()) loop_.run_one();
        break;
      default:
        if (pick(20) == 0) queue_->hold_until(now_ + milliseconds(pick(5000)));
        if (pick(20) == 0) loop_.run();
    }
  }

  void enter() {
    const int name = static_cast<int>(calls_.size());
    Call& call = calls_[name];
    call.deadline = now_ + milliseconds(pick(30'000));
    const Lane lane = pick(2) == 0 ? Lane::kInteractive : Lane::kBatch;
    auto admission = queue_->enter(
        {lane, std::string(1, static_cast<char>('a' + pick(4))), call.deadline, &loop_, pick(300)}, now_,
        [this, name](Result<LaneSlot> slot) {
          ++calls_[name].answers;
          if (slot) held_.push_back(*std::move(slot));
        });
    if (admission && !admission->slot) {
      call.waiter = admission->waiter;
      waited_.push_back(name);
      return;
    }
    ++call.answers;
    if (admission) held_.push_back(std::move(admission->slot));
  }

  void cancel() {
    if (waited_.empty()) return;
    Call& call = calls_[waited_[pick(waited_.size())]];
    if (queue_->cancel(call.waiter, now_)) ++call.answers;
  }

  void check() {
    const auto stats = queue_->stats(now_);
    if (options_.slots != 0) {
      ASSERT_LE(stats.interactive.in_use + stats.batch.in_use, options_.slots);
      const std::size_t share =
          options_.batch_slots != 0
              ? options_.batch_slots
              : std::max<std::size_t>(1, options_.slots - std::max<std::size_t>(1, options_.slots / 8));
      ASSERT_LE(stats.batch.in_use, share);
    }
    ASSERT_LE(stats.interactive.waiting + stats.batch.waiting, options_.max_queue);
    ASSERT_LE(held_.size(), stats.interactive.in_use + stats.batch.in_use);
    if (calls_.size() % 16 != 0) return;
    std::size_t unanswered = 0;
    for (const auto& [name, call] : calls_) {
      ASSERT_LE(call.answers, 1) << "call " << name;
      unanswered += call.answers == 0 ? 1U : 0U;
    }
    // Those that wait, and those whose answer is on its way.
    ASSERT_LE(stats.interactive.waiting + stats.batch.waiting, unanswered);
  }

  std::mt19937_64 random_;
  LaneQueueOptions options_;
  TimePoint now_{1h};
  std::optional<LaneQueue> queue_;
  HeldExecutor loop_;
  std::map<int, Call> calls_;
  std::vector<int> waited_;
  std::vector<LaneSlot> held_;
};

TEST(LaneQueueProperty, NoCallIsLostOrAnsweredTwiceAndNoShareExceeded) {
  const std::uint64_t first = std::random_device{}();
  for (std::uint64_t seed = first; seed < first + 60 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    RandomOperations(seed).run(400);
  }
}

// With the lane saturated by interactive calls, whoever waits in the batch lane is served, whichever its
// caller.
TEST(LaneQueueProperty, NoBatchCallStarves) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  LaneQueue queue("p", {.slots = 3, .max_queue = 1000, .max_wait = 1000h, .aging = 5s});
  HeldExecutor loop;
  TimePoint now{1h};
  std::vector<LaneSlot> held;
  int batch_left = 0;
  const auto enter = [&](Lane lane, const std::string& caller) {
    batch_left += lane == Lane::kBatch ? 1 : 0;
    auto admission = queue.enter({lane, caller, now + 1000h, &loop}, now, [&, lane](Result<LaneSlot> slot) {
      batch_left -= lane == Lane::kBatch ? 1 : 0;
      if (slot) held.push_back(*std::move(slot));
    });
    ASSERT_TRUE(admission);
    if (!admission->slot) return;
    batch_left -= lane == Lane::kBatch ? 1 : 0;
    held.push_back(std::move(admission->slot));
  };
  for (int i = 0; i < 20; ++i) enter(Lane::kInteractive, "");
  for (int i = 0; i < 40; ++i) enter(Lane::kBatch, std::to_string(random() % 5));
  for (int i = 0; i < 40 * 8 + 50; ++i) {
    enter(Lane::kInteractive, "");
    now += 200ms;
    const auto ends = held.begin() + static_cast<std::ptrdiff_t>(random() % held.size());
    LaneSlot slot = std::move(*ends);
    held.erase(ends);
    slot.release(now);
    loop.run();
  }
  EXPECT_EQ(batch_left, 0);
  queue.stop();
  loop.run();
  held.clear();
}

TEST(LaneQueueThreads, CallsOfSeveralLoopsAreAllAnswered) {
  constexpr int kCalls = 500, kThreads = 4;
  constexpr std::size_t kSlots = 3;
  LaneQueue queue("p", {.slots = kSlots, .max_queue = 100'000, .max_wait = 1h});
  std::atomic<std::size_t> in_use{0}, most{0}, answered{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      // Grants come from other threads, and run on this one.
      class Loop final : public Executor {
       public:
        void post(std::move_only_function<void()> work) override {
          const std::scoped_lock lock(mutex_);
          work_.push_back(std::move(work));
          posted_.notify_one();
        }
        void wait() {
          std::unique_lock lock(mutex_);
          posted_.wait(lock, [this] { return !work_.empty(); });
        }
        void run() {
          std::deque<std::move_only_function<void()>> work;
          {
            const std::scoped_lock lock(mutex_);
            work.swap(work_);
          }
          for (auto& each : work) each();
        }

       private:
        std::mutex mutex_;
        std::condition_variable posted_;
        std::deque<std::move_only_function<void()>> work_;
      } loop;
      SteadyClock clock;
      int mine = 0;
      const auto use = [&](LaneSlot slot) {
        const std::size_t used = in_use.fetch_add(1) + 1;
        for (std::size_t seen = most.load(); used > seen && !most.compare_exchange_weak(seen, used);) {
        }
        in_use.fetch_sub(1);
        slot.release(clock.now());
        ++mine;
      };
      for (int i = 0; i < kCalls; ++i) {
        const Lane lane = i % 2 == 0 ? Lane::kInteractive : Lane::kBatch;
        auto admission = queue.enter({lane, std::to_string(t), clock.now() + 1h, &loop}, clock.now(),
                                     [&](Result<LaneSlot> slot) {
                                       ASSERT_TRUE(slot);
                                       use(*std::move(slot));
                                     });
        ASSERT_TRUE(admission);
        if (admission->slot) {
          use(std::move(admission->slot));
        } else if (i % 7 == 0 && queue.cancel(admission->waiter, clock.now())) {
          ++mine;
        }
        loop.run();
      }
      while (mine < kCalls) {
        loop.wait();
        loop.run();
      }
      answered += static_cast<std::size_t>(mine);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered, static_cast<std::size_t>(kCalls) * kThreads);
  EXPECT_LE(most, kSlots);
  EXPECT_EQ(queue.stats(SteadyClock().now()).interactive.in_use, 0U);
}

}  // namespace
}  // namespace waybill::upstream
