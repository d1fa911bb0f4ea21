#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "upstream/held_executor_test.h"
#include "upstream/lane_queue.h"

namespace waybill::upstream {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

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
