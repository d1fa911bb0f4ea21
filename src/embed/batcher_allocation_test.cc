#include <atomic>
#include <vector>

#include <gtest/gtest.h>

#include "base/allocation_count_test.h"
#include "base/clock.h"
#include "base/executor.h"
#include "embed/batcher.h"
#include "embed/batcher_fakes_test.h"

namespace waybill::embed {
namespace {

// Submits bursts, waits for each burst's answers. What holds the computing threads is let go of after a
// burst.
void run_load(Batcher& batcher, Executor& executor, int bursts, std::atomic<bool>& hold) {
  static const std::vector<TokenId> ids(128, 1);
  std::atomic<std::size_t> answers{0};
  std::size_t submitted = 0;
  for (int burst = 0; burst < bursts; ++burst) {
    for (std::size_t i = 0; i < 40; ++i, ++submitted) {
      Batcher::Item item{.ids = std::span(ids).first(5 + (i * 37) % 120),
                         .deadline = TimePoint::max() - std::chrono::hours(1),
                         .executor = &executor,
                         .done = [&answers](auto&&, const BatchTiming&) { ++answers; }};
      ASSERT_TRUE(batcher.submit(std::move(item)));
    }
    hold = false;
    wait_until([&] { return answers == submitted; });
  }
}

TEST(BatcherAllocation, NothingIsAllocatedPerItemAfterWarmUp) {
  SteadyClock clock;
  std::atomic<bool> hold{true};  // so that the queue grows in the first burst to what it can ever need
  FakeFunction function([&hold](unsigned, const PackedBatch&) { wait_until([&hold] { return !hold; }); });
  InlineExecutor executor;
  Batcher batcher(function, {.threads = 2}, clock);
  run_load(batcher, executor, 50, hold);
  const std::size_t before = allocation_count();
  run_load(batcher, executor, 500, hold);
  EXPECT_EQ(allocation_count() - before, 0U) << "in 20,000 items";
  const std::vector<int> proof(100);
  EXPECT_GT(allocation_count() - before, 0U) << "the counter counts";
}

}  // namespace
}  // namespace waybill::embed
