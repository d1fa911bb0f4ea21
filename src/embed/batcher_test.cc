#include "embed/batcher.h"

#include <array>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embed/batcher_fakes_test.h"

namespace waybill::embed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

// One answer, as the test saw it.
struct Seen {
  std::atomic<int> times{0};
  std::optional<ErrorCode> error;
  std::string message;
  std::vector<float> embedding;
  BatchTiming timing;

  Batcher::Completion completion() {
    return [this](Result<std::span<const float>> result, const BatchTiming& t) {
      timing = t;
      if (result) {
        embedding.assign(result->begin(), result->end());
      } else {
        error = result.error().code;
        message = result.error().message;
      }
      ++times;
    };
  }
};

class BatcherTest : public testing::Test {
 protected:
  BatcherOptions one_thread(std::size_t batch = 128, std::size_t queue = 1000) {
    return {.threads = 1,
            .max_batch_tokens = batch,
            .max_queue_tokens = queue,
            .initial_tokens_per_second = 1000};
  }
  Batcher::Item item(Seen& seen, std::size_t tokens, TimePoint deadline = TimePoint::max()) {
    return {.ids = std::span(ids_).first(tokens),
            .deadline = deadline,
            .executor = &inline_,
            .done = seen.completion()};
  }
  // Occupies the only thread of `batcher` until the gate lets go of it.
  void occupy(Batcher& batcher, GatedFunction& gate, Seen& seen, std::size_t tokens = 1) {
    const std::size_t before = gate.batches().size();
    ASSERT_TRUE(batcher.submit(item(seen, tokens)));
    gate.wait_for_batches(before + 1);
  }
  static void expect_balanced(const BatcherStats& s) {
    EXPECT_EQ(s.accepted,
              s.computed + s.failed + s.expired + s.cancelled + s.stopped + s.queued_items + s.running_items);
  }

  FakeClock clock_;
  InlineExecutor inline_;
  std::vector<TokenId> ids_ = std::vector<TokenId>(2000, 3);
};

TEST_F(BatcherTest, AnswersAnItemWithItsEmbeddingAndTimes) {
  FakeFunction function([&](unsigned, const PackedBatch&) { clock_.advance(milliseconds(5)); });
  Batcher batcher(function, one_thread(), clock_);
  Seen seen;
  const TimePoint before = clock_.now();
  ASSERT_TRUE(batcher.submit(item(seen, 7)));
  wait_until([&] { return seen.times == 1; });
  EXPECT_THAT(seen.embedding, ElementsAre(21, 7));
  EXPECT_EQ(seen.timing.queued, before);
  EXPECT_EQ(seen.timing.started, before);
  EXPECT_EQ(seen.timing.finished, before + milliseconds(5));
  EXPECT_EQ(seen.timing.batch_tokens, 7U);
  EXPECT_EQ(seen.timing.batch_sequences, 1U);
}

TEST_F(BatcherTest, PacksWhatWaitsInOrderUpToTheBudget) {
  std::vector<Seen> seen(6);
  GatedFunction gate;
  Batcher batcher(gate, one_thread(100), clock_);
  occupy(batcher, gate, seen[0]);
  for (const auto& [i, tokens] : {std::pair{1, 60}, {2, 30}, {3, 20}, {4, 10}, {5, 90}}) {
    ASSERT_TRUE(batcher.submit(item(seen[static_cast<std::size_t>(i)], static_cast<std::size_t>(tokens))));
  }
  gate.open();
  wait_until([&] { return batcher.stats().answered == 6; });
  EXPECT_THAT(gate.batches(),
              ElementsAre(ElementsAre(1), ElementsAre(60, 30), ElementsAre(20, 10), ElementsAre(90)));
  for (const Seen& s : seen) EXPECT_EQ(s.times, 1);
}

TEST_F(BatcherTest, AnItemLargerThanTheBudgetGoesAlone) {
  std::array<Seen, 4> seen;
  GatedFunction gate;
  Batcher batcher(gate, one_thread(100), clock_);
  occupy(batcher, gate, seen[0]);
  ASSERT_TRUE(batcher.submit(item(seen[1], 10)));
  ASSERT_TRUE(batcher.submit(item(seen[2], 250)));
  ASSERT_TRUE(batcher.submit(item(seen[3], 10)));
  gate.open();
  wait_until([&] { return batcher.stats().answered == 4; });
  EXPECT_THAT(gate.batches(),
              ElementsAre(ElementsAre(1), ElementsAre(10), ElementsAre(250), ElementsAre(10)));
  EXPECT_THAT(seen[2].embedding, ElementsAre(750, 250));
}

TEST_F(BatcherTest, QueuesSeveralItemsTogetherOrNone) {
  std::array<Seen, 4> seen;
  FakeFunction function;
  Batcher batcher(function, one_thread(100, 50), clock_);
  std::vector<Batcher::Item> items;
  for (std::size_t i = 0; i < 3; ++i) items.push_back(item(seen[i], 10));
  ASSERT_TRUE(batcher.submit(std::span(items)));
  wait_until([&] { return batcher.stats().answered == 3; });
  items.clear();
  for (std::size_t i = 0; i < 3; ++i) items.push_back(item(seen[3], 20));
  const Status refused = batcher.submit(std::span(items));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidInput) << "60 tokens never fit into a queue of 50";
  for (const Batcher::Item& left : items) EXPECT_TRUE(left.done != nullptr);
  EXPECT_EQ(batcher.stats().accepted, 3U);
  EXPECT_EQ(seen[3].times, 0);
}

TEST_F(BatcherTest, TheWaitOfSeveralItemsIsThatOfTheLast) {
  std::array<Seen, 5> seen;
  FakeFunction function;
  Batcher batcher(function, one_thread(10), clock_);  // 10 tokens take 10 ms
  const auto submit = [&](Duration max_wait) {
    std::vector<Batcher::Item> items;
    for (Seen& s : seen) items.push_back(item(s, 10));
    items[2].max_wait = max_wait;
    return batcher.submit(std::span(items));
  };
  const Status refused = submit(milliseconds(45));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOverloaded);
  EXPECT_GT(refused.error().retry_after, milliseconds(45));
  EXPECT_LT(refused.error().retry_after, milliseconds(80));
  EXPECT_TRUE(submit(refused.error().retry_after + milliseconds(1)));
}

TEST_F(BatcherTest, OnceQueuedOnlyTheDeadlineCounts) {
  std::array<Seen, 2> seen;
  GatedFunction gate;
  Batcher batcher(gate, one_thread(), clock_);
  occupy(batcher, gate, seen[0]);
  Batcher::Item patient = item(seen[1], 5);
  patient.max_wait = seconds(1);
  ASSERT_TRUE(batcher.submit(std::move(patient)));
  clock_.advance(seconds(10));
  gate.open();
  wait_until([&] { return batcher.stats().answered == 2; });
  EXPECT_FALSE(seen[1].error.has_value());
}

TEST_F(BatcherTest, GivesTheFunctionTheContextOfEachSequence) {
  class ContextFunction final : public BatchFunction {
   public:
    [[nodiscard]] std::size_t dim() const noexcept override { return 1; }
    std::size_t run(unsigned, const PackedBatch& batch, std::span<void* const> contexts,
                    std::span<float> out) override {
      EXPECT_EQ(contexts.size(), batch.sequences());
      for (std::size_t i = 0; i < contexts.size(); ++i) out[i] = *static_cast<float*>(contexts[i]);
      return batch.ids.size();
    }
  };
  ContextFunction function;
  Batcher batcher(function, one_thread(), clock_);
  std::array<Seen, 3> seen;
  std::array<float, 3> values = {3, 1, 2};
  std::vector<Batcher::Item> items;
  for (std::size_t i = 0; i < 3; ++i) {
    items.push_back(item(seen[i], 1 + i));
    items.back().context = &values[i];
  }
  ASSERT_TRUE(batcher.submit(std::span(items)));
  wait_until([&] { return batcher.stats().answered == 3; });
  for (std::size_t i = 0; i < 3; ++i) EXPECT_THAT(seen[i].embedding, ElementsAre(values[i]));
}

TEST_F(BatcherTest, ThreadsThatAreFreeTogetherShareWhatWaits) {
  std::array<Seen, 6> seen;
  GatedFunction gate;
  {
    BatcherOptions options = one_thread(1000);
    options.threads = 2;
    Batcher batcher(gate, options, clock_);
    ASSERT_TRUE(batcher.submit(item(seen[0], 1)));
    ASSERT_TRUE(batcher.submit(item(seen[1], 1)));
    gate.wait_for_batches(2);
    // Both threads are held inside the function; the next four items wait, and one thread comes back for
    // them.
    for (std::size_t i = 2; i < 6; ++i) ASSERT_TRUE(batcher.submit(item(seen[i], 16)));
    gate.pass();
    gate.wait_for_batches(3);
    gate.open();
  }
  const auto batches = gate.batches();
  EXPECT_THAT(std::vector(batches.begin(), batches.begin() + 2), ElementsAre(ElementsAre(1), ElementsAre(1)));
  EXPECT_THAT(batches[2], ElementsAre(16, 16, 16, 16)) << "the other thread was busy, so the first takes all";
}

TEST_F(BatcherTest, RefusesWhatTheQueueCannotHoldAndLeavesTheItemAsItWas) {
  std::array<Seen, 3> seen;
  GatedFunction gate;
  Batcher batcher(gate, one_thread(100, 50), clock_);
  occupy(batcher, gate, seen[0]);
  ASSERT_TRUE(batcher.submit(item(seen[1], 30)));
  Batcher::Item refused = item(seen[2], 21);
  const Status status = batcher.submit(std::move(refused));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kOverloaded);
  EXPECT_THAT(status.error().message, HasSubstr("ms"));
  EXPECT_TRUE(refused.done != nullptr);
  refused.ids = refused.ids.first(20);
  EXPECT_TRUE(batcher.submit(std::move(refused)));
  EXPECT_EQ(batcher.stats().queued_tokens, 50U);
  EXPECT_EQ(batcher.submit(item(seen[2], 51)).error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(batcher.submit(item(seen[2], 0)).error().code, ErrorCode::kInvalidInput);
  gate.open();
}

TEST_F(BatcherTest, RefusesAtOnceWhatCouldNotMakeItsDeadline) {
  std::array<Seen, 4> seen;
  GatedFunction gate;
  Batcher batcher(gate, one_thread(), clock_);  // 1000 tokens/s
  occupy(batcher, gate, seen[0], 100);
  const Status late = batcher.submit(item(seen[1], 50, clock_.now() + milliseconds(120)));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kOverloaded);
  EXPECT_THAT(late.error().message, HasSubstr("would take"));
  EXPECT_THAT(late.error().message, HasSubstr("120 ms"));
  EXPECT_TRUE(batcher.submit(item(seen[2], 50, clock_.now() + milliseconds(250))));
  EXPECT_EQ(batcher.submit(item(seen[3], 1, clock_.now())).error().code, ErrorCode::kDeadlineExceeded);
  gate.open();
  wait_until([&] { return batcher.stats().answered == 2; });
  EXPECT_EQ(seen[1].times, 0);
  EXPECT_EQ(batcher.stats().refused, 2U);
}

TEST_F(BatcherTest, WhatItTakesIsTriedAgainNowAndThenWhereNobodyComputes) {
  std::array<Seen, 3> seen;
  GatedFunction gate;
  Batcher batcher(gate, one_thread(), clock_);  // 10 tokens take 10 ms
  const auto submit = [&](Seen& to) {
    Batcher::Item impatient = item(to, 10);
    impatient.max_wait = milliseconds(5);
    return batcher.submit(std::move(impatient));
  };
  EXPECT_EQ(submit(seen[0]).error().code, ErrorCode::kOverloaded);
  clock_.advance(seconds(1));
  ASSERT_TRUE(submit(seen[0]));
  wait_until([&] { return batcher.stats().running_items == 1; });
  EXPECT_EQ(submit(seen[1]).error().code, ErrorCode::kOverloaded) << "one teaches what it takes";
  clock_.advance(seconds(2));
  EXPECT_EQ(submit(seen[1]).error().code, ErrorCode::kOverloaded) << "the answer is still to come";
  gate.open();
  wait_until([&] { return batcher.stats().answered == 1; });
  EXPECT_FALSE(seen[0].error.has_value());
}

TEST_F(BatcherTest, DropsAndAnswersWhatComesToTheFrontAtItsDeadlineOrLater) {
  std::array<Seen, 4> seen;
  GatedFunction gate;
  Batcher batcher(gate, one_thread(), clock_);
  occupy(batcher, gate, seen[0]);
  const TimePoint start = clock_.now();
  ASSERT_TRUE(batcher.submit(item(seen[1], 10, start + seconds(1))));
  ASSERT_TRUE(batcher.submit(item(seen[2], 10, start + seconds(1) + Duration(1))));
  ASSERT_TRUE(batcher.submit(item(seen[3], 10)));
  clock_.advance(seconds(1));
  gate.open();
  wait_until([&] { return batcher.stats().answered == 4; });
  EXPECT_EQ(seen[1].error, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(seen[1].timing.queued, start);
  EXPECT_EQ(seen[1].timing.started, TimePoint{});
  EXPECT_FALSE(seen[2].error);
  EXPECT_THAT(gate.batches(), ElementsAre(ElementsAre(1), ElementsAre(10, 10)));
  EXPECT_EQ(batcher.stats().expired, 1U);
  expect_balanced(batcher.stats());
}

TEST_F(BatcherTest, AnswersACancelledItemWithoutComputingIt) {
  std::array<Seen, 2> seen;
  GatedFunction gate;
  Batcher batcher(gate, one_thread(), clock_);
  occupy(batcher, gate, seen[0]);
  std::atomic<bool> cancelled{false};
  Batcher::Item second = item(seen[1], 10);
  second.cancelled = &cancelled;
  ASSERT_TRUE(batcher.submit(std::move(second)));
  cancelled = true;
  gate.open();
  wait_until([&] { return batcher.stats().answered == 2; });
  EXPECT_EQ(seen[1].error, ErrorCode::kCancelled);
  EXPECT_EQ(gate.batches().size(), 1U);
}

TEST_F(BatcherTest, DroppedItemsAreAnsweredBeforeTheirBatchIsComputed) {
  std::array<Seen, 3> seen;
  GatedFunction gate;
  Batcher batcher(gate, one_thread(), clock_);
  occupy(batcher, gate, seen[0]);
  ASSERT_TRUE(batcher.submit(item(seen[1], 10, clock_.now() + seconds(1))));
  ASSERT_TRUE(batcher.submit(item(seen[2], 10)));
  clock_.advance(seconds(2));
  gate.pass();
  gate.wait_for_batches(2);
  EXPECT_EQ(seen[1].times, 1);
  EXPECT_EQ(seen[2].times, 0);
  gate.open();
}

TEST_F(BatcherTest, AQueueFullOfExpiredItemsIsAnsweredWhole) {
  std::vector<Seen> seen(901);
  GatedFunction gate;
  Batcher batcher(gate, one_thread(8), clock_);
  occupy(batcher, gate, seen[900]);
  for (std::size_t i = 0; i < 900; ++i)
    ASSERT_TRUE(batcher.submit(item(seen[i], 1, clock_.now() + seconds(30))));
  clock_.advance(seconds(60));
  gate.open();
  wait_until([&] { return batcher.stats().answered == 901; });
  EXPECT_EQ(batcher.stats().expired, 900U);
  for (std::size_t i = 0; i < 900; ++i) EXPECT_EQ(seen[i].error, ErrorCode::kDeadlineExceeded);
}

TEST_F(BatcherTest, StopAnswersTheQueueBeforeItWaitsForTheRunningBatch) {
  std::array<Seen, 3> seen;
  GatedFunction gate;
  Batcher batcher(gate, one_thread(), clock_);
  occupy(batcher, gate, seen[0]);
  ASSERT_TRUE(batcher.submit(item(seen[1], 10)));
  std::thread stopper([&] { batcher.stop(); });
  wait_until([&] { return seen[1].times == 1; });
  EXPECT_EQ(seen[1].error, ErrorCode::kShuttingDown);
  EXPECT_EQ(seen[0].times, 0);
  EXPECT_EQ(batcher.submit(item(seen[2], 10)).error().code, ErrorCode::kShuttingDown);
  std::thread second_stopper([&] { batcher.stop(); });
  gate.open();
  stopper.join();
  second_stopper.join();
  EXPECT_EQ(seen[0].times, 1);
  EXPECT_FALSE(seen[0].error);
  expect_balanced(batcher.stats());
}

TEST_F(BatcherTest, WhatTheFunctionThrowsIsAnsweredAndTheThreadGoesOn) {
  int calls = 0;
  FakeFunction function([&](unsigned, const PackedBatch&) {
    if (++calls == 1) throw std::runtime_error("out of tiles");
    if (calls == 2) throw 42;
  });
  Batcher batcher(function, one_thread(), clock_);
  std::array<Seen, 3> seen;
  for (Seen& s : seen) {
    ASSERT_TRUE(batcher.submit(item(s, 5)));
    wait_until([&] { return s.times == 1; });
  }
  EXPECT_EQ(seen[0].error, ErrorCode::kInternal);
  EXPECT_THAT(seen[0].message, HasSubstr("out of tiles"));
  EXPECT_EQ(seen[1].error, ErrorCode::kInternal);
  EXPECT_FALSE(seen[2].error);
  EXPECT_EQ(batcher.stats().failed, 2U);
}

TEST_F(BatcherTest, WhatACompletionThrowsIsCountedAndHarmsNobody) {
  FakeFunction function;
  Batcher batcher(function, one_thread(), clock_);
  Batcher::Item bad{.ids = std::span(ids_).first(3),
                    .executor = &inline_,
                    .done = [](auto&&, const BatchTiming&) { throw std::runtime_error("no"); }};
  ASSERT_TRUE(batcher.submit(std::move(bad)));
  Seen good;
  ASSERT_TRUE(batcher.submit(item(good, 3)));
  wait_until([&] { return good.times == 1; });
  EXPECT_EQ(batcher.stats().completions_threw, 1U);
  wait_until([&] { return batcher.stats().answered == 2; });
}

TEST_F(BatcherTest, AnExecutorThatRefusesOrDropsTheWorkStillGetsAnAnswerForIt) {
  FakeFunction function;
  Batcher batcher(function, one_thread(), clock_);
  QueueExecutor executor;
  std::array<Seen, 2> seen;
  for (Seen& s : seen) {
    Batcher::Item next = item(s, 3);
    next.executor = &executor;
    ASSERT_TRUE(batcher.submit(std::move(next)));
    wait_until([&] { return batcher.stats().computed == static_cast<std::size_t>(&s - seen.data()) + 1; });
    if (&s == seen.data()) {
      wait_until([&] {
        executor.drop();
        return s.times == 1;
      });
      executor.close();
    }
  }
  wait_until([&] { return seen[1].times == 1; });
  EXPECT_EQ(seen[0].error, ErrorCode::kShuttingDown);
  EXPECT_EQ(seen[1].error, ErrorCode::kShuttingDown);
}

TEST_F(BatcherTest, AnswersRunOnTheirExecutorEvenWhenTheBatcherIsGone) {
  QueueExecutor executor;
  Seen seen;
  FakeFunction function;
  {
    Batcher batcher(function, one_thread(), clock_);
    Batcher::Item next = item(seen, 4);
    next.executor = &executor;
    ASSERT_TRUE(batcher.submit(std::move(next)));
    wait_until([&] { return batcher.stats().computed == 1; });
    EXPECT_EQ(batcher.stats().answered, 0U);
  }
  EXPECT_EQ(seen.times, 0);
  EXPECT_EQ(executor.run(), 1U);
  EXPECT_THAT(seen.embedding, ElementsAre(12, 4));
}

TEST_F(BatcherTest, ACompletionMaySubmitAndAskForStats) {
  FakeFunction function;
  Batcher batcher(function, one_thread(), clock_);
  std::promise<void> done;
  int rounds = 0;
  std::function<void()> again = [&] {
    Batcher::Item next{
        .ids = std::span(ids_).first(3), .executor = &inline_, .done = [&](auto&&, const BatchTiming&) {
          EXPECT_GE(batcher.predicted_wait(3).count(), 0);
          EXPECT_GE(batcher.stats().computed, 1U);
          if (++rounds == 100) {
            done.set_value();
          } else {
            again();
          }
        }};
    ASSERT_TRUE(batcher.submit(std::move(next)));
  };
  again();
  done.get_future().wait();
}

TEST_F(BatcherTest, ZeroThreadsMeansOnePerCore) {
  FakeFunction function;
  BatcherOptions options = one_thread();
  options.threads = 0;
  Batcher batcher(function, options, clock_);
  EXPECT_EQ(batcher.stats().threads, std::max(1U, std::thread::hardware_concurrency()));
}

TEST_F(BatcherTest, TheThreadsAreNamedForWhoLooksAtTheProcess) {
  char name[16] = {};
  FakeFunction function(
      [&](unsigned, const PackedBatch&) { pthread_getname_np(pthread_self(), name, sizeof name); });
  Batcher batcher(function, one_thread(), clock_);
  Seen seen;
  ASSERT_TRUE(batcher.submit(item(seen, 1)));
  wait_until([&] { return seen.times == 1; });
  EXPECT_STREQ(name, "embed-0");
}

}  // namespace
}  // namespace waybill::embed
