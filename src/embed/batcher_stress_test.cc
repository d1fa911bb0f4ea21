// The batcher's ledger under fire: whatever the deadlines, cancellations, failures and stops, every accepted
// item is answered exactly once and with its own embedding.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "embed/batcher.h"
#include "embed/batcher_fakes_test.h"

namespace waybill::embed {
namespace {

constexpr std::size_t kSubmitters = 4;
constexpr std::size_t kItems = 1500;

struct Tracked {
  std::vector<TokenId> ids;
  std::atomic<bool> cancelled{false};
  std::atomic<int> answers{0};
  bool accepted = false;
  std::atomic<bool> wrong{false};
};

// An event loop on a thread of its own.
class LoopExecutor final : public Executor {
 public:
  LoopExecutor() : thread_([this] { loop(); }) {}
  ~LoopExecutor() override {
    stop_ = true;
    thread_.join();
    queue_.run();
  }
  void post(std::move_only_function<void()> work) override { queue_.post(std::move(work)); }

 private:
  void loop() {
    while (!stop_) {
      if (queue_.run() == 0) std::this_thread::yield();
    }
  }
  QueueExecutor queue_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

void complete(Tracked& tracked, const Result<std::span<const float>>& result) {
  if (result && !std::ranges::equal(*result, fake_embedding(tracked.ids))) tracked.wrong = true;
  ++tracked.answers;
}

void submit_all(Batcher& batcher, const Clock& clock, std::vector<Tracked>& items,
                std::array<Executor*, 2> executors, unsigned seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  for (Tracked& tracked : items) {
    tracked.ids.resize(static_cast<std::size_t>(1 + pick(pick(20) == 0 ? 300 : 40)));
    for (TokenId& id : tracked.ids) id = pick(1000);
    Batcher::Item item{.ids = tracked.ids,
                       .executor = executors[static_cast<std::size_t>(pick(2))],
                       .cancelled = &tracked.cancelled,
                       .done = [&tracked](Result<std::span<const float>> result, const BatchTiming&) {
                         complete(tracked, result);
                       }};
    if (pick(3) == 0) item.deadline = clock.now() + std::chrono::microseconds(pick(5000) - 100);
    tracked.accepted = batcher.submit(std::move(item)).has_value();
    if (pick(10) == 0) tracked.cancelled = true;
    if (pick(50) == 0) std::this_thread::yield();
  }
}

void run_round(unsigned seed, unsigned threads, bool stop_in_the_middle) {
  SCOPED_TRACE(testing::Message() << "seed " << seed << ", threads " << threads);
  SteadyClock clock;
  std::vector<std::vector<Tracked>> items(kSubmitters);
  for (auto& list : items) list = std::vector<Tracked>(kItems);
  FakeFunction function([](unsigned, const PackedBatch& batch) {
    if (batch.ids[0] == 7) throw std::runtime_error("seven");
    if (batch.ids[0] % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  });
  BatcherStats stats;
  {
    LoopExecutor loop;
    InlineExecutor inline_executor;
    const std::array<Executor*, 2> executors = {&loop, &inline_executor};
    Batcher batcher(function, {.threads = threads, .max_batch_tokens = 128, .max_queue_tokens = 2000}, clock);
    std::vector<std::thread> submitters;
    std::atomic<std::size_t> submitting{kSubmitters};
    for (std::size_t i = 0; i < kSubmitters; ++i) {
      submitters.emplace_back([&, i] {
        submit_all(batcher, clock, items[i], executors, seed * 100 + static_cast<unsigned>(i));
        --submitting;
      });
    }
    if (stop_in_the_middle) {
      // A slow machine refuses so many that fewer are ever computed.
      wait_until([&] { return batcher.stats().computed > 500 || submitting == 0; });
      batcher.stop();
    }
    for (std::thread& submitter : submitters) submitter.join();
    if (seed % 2 == 0)
      wait_until([&] {
        const auto s = batcher.stats();
        return s.queued_items + s.running_items == 0;
      });
    batcher.stop();
    stats = batcher.stats();
  }
  std::size_t accepted = 0, refused = 0;
  for (const auto& list : items) {
    for (const Tracked& tracked : list) {
      ASSERT_EQ(tracked.answers, tracked.accepted ? 1 : 0);
      ASSERT_FALSE(tracked.wrong) << "got another item's embedding";
      ++(tracked.accepted ? accepted : refused);
    }
  }
  EXPECT_EQ(stats.accepted, accepted);
  EXPECT_EQ(stats.refused, refused);
  EXPECT_EQ(accepted, stats.computed + stats.failed + stats.expired + stats.cancelled + stats.stopped);
  EXPECT_EQ(stats.queued_items + stats.queued_tokens + stats.running_items + stats.running_tokens, 0U);
  EXPECT_GT(stats.computed, 0U);
}

TEST(BatcherStress, EveryAcceptedItemIsAnsweredExactlyOnceWithItsOwnEmbedding) {
  for (unsigned seed = 1; seed <= 6; ++seed) run_round(seed, 1 + seed % 3, false);
}

TEST(BatcherStress, AndWhenItIsStoppedInTheMiddle) {
  for (unsigned seed = 11; seed <= 16; ++seed) run_round(seed, 1 + seed % 3, true);
}

TEST(BatcherStress, StartingAndStoppingWithNothingToDoEnds) {
  SteadyClock clock;
  FakeFunction function;
  for (int i = 0; i < 50; ++i) {
    Batcher batcher(function, {.threads = 3}, clock);
    if (i % 2 == 0) batcher.stop();
  }
}

TEST(BatcherStress, TheLedgerBalancesAtEveryMoment) {
  SteadyClock clock;
  FakeFunction function;
  InlineExecutor executor;
  const std::vector<TokenId> ids(10, 1);
  Batcher batcher(function, {.threads = 2, .max_queue_tokens = 500}, clock);
  std::atomic<bool> done{false};
  std::thread submitter([&] {
    for (int i = 0; i < 20'000; ++i) {
      Batcher::Item item{.ids = ids, .executor = &executor, .done = [](auto&&, const BatchTiming&) {}};
      (void)batcher.submit(std::move(item));
    }
    done = true;
  });
  while (!done) {
    const BatcherStats s = batcher.stats();
    const std::uint64_t ended = s.computed + s.failed + s.expired + s.cancelled + s.stopped;
    ASSERT_EQ(s.accepted, ended + s.queued_items + s.running_items);
    ASSERT_LE(s.answered, ended);
  }
  submitter.join();
}

}  // namespace
}  // namespace waybill::embed
