#include "embed/wait_forecast.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/executor.h"
#include "embed/batch_cost.h"
#include "embed/batcher.h"
#include "embed/batcher_fakes_test.h"

namespace waybill::embed {
namespace {

TEST(BatchCost, IsProportionalUntilBatchesDifferInSize) {
  BatchCost cost(1000, 128);
  EXPECT_NEAR(cost.seconds(64), 0.064, 1e-6);
  for (int i = 0; i < 200; ++i) cost.observe(16, 0.004);
  EXPECT_NEAR(cost.tokens_per_second(), 4000, 50);
  EXPECT_NEAR(cost.seconds(16), 0.004, 0.0002);
}

TEST(BatchCost, LearnsWhatABatchCostsBesidesItsTokens) {
  BatchCost cost(1000, 128);
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const std::size_t tokens = 8 + random() % 40;
    cost.observe(tokens, 0.0005 + 1e-5 * static_cast<double>(tokens));
  }
  EXPECT_NEAR(cost.seconds(128), 0.0005 + 128e-5, 0.0003) << "a size that has not been seen";
  EXPECT_NEAR(cost.seconds(24), 0.0005 + 24e-5, 0.00005);
}

TEST(BatchCost, OneSlowBatchDoesNotStick) {
  BatchCost cost(20'000, 128);
  for (int i = 0; i < 50; ++i) cost.observe(64, 0.004);
  cost.observe(64, 3.0);
  EXPECT_LT(cost.seconds(64), 0.0048);
  for (int i = 0; i < 40; ++i) cost.observe(64, 0.04);
  EXPECT_GT(cost.seconds(64), 0.02) << "but a machine that has become slow is noticed";
}

TEST(WaitForecast, ANewcomerOnAnIdleMachineWaitsForItselfOnly) {
  const BatchCost cost(1000, 100);
  std::array<double, 2> free_in = {0, 0};
  EXPECT_NEAR(forecast_seconds(cost, {0, 0, 100}, 50, free_in), 0.05, 1e-6);
}

TEST(WaitForecast, WithOneOfTwoThreadsBusyItStillWaitsForItselfOnly) {
  const BatchCost cost(1000, 100);
  std::array<double, 2> free_in = {0.09, 0};
  EXPECT_NEAR(forecast_seconds(cost, {0, 0, 100}, 50, free_in), 0.05, 1e-6);
}

TEST(WaitForecast, BehindARunningBatchItWaitsForTheRestOfIt) {
  const BatchCost cost(1000, 100);
  std::array<double, 1> free_in = {remaining_seconds(cost, 100, 0.07)};
  EXPECT_NEAR(forecast_seconds(cost, {0, 0, 100}, 100, free_in), 0.03 + 0.1, 1e-6);
}

TEST(WaitForecast, TheQueueIsSharedByTheThreads) {
  const BatchCost cost(1000, 100);
  std::array<double, 1> one = {0.1};
  std::array<double, 4> four = {0.1, 0.1, 0.1, 0.1};
  const double alone = forecast_seconds(cost, {10'000, 1000, 100}, 10, one);
  EXPECT_NEAR(alone, 10.1, 0.3);
  EXPECT_NEAR(forecast_seconds(cost, {10'000, 1000, 100}, 10, four), 2.6, 0.2);
}

TEST(WaitForecast, AThreadThatHangsIsNotWaitedFor) {
  const BatchCost cost(1000, 100);
  std::array<double, 2> free_in = {remaining_seconds(cost, 100, 80), 0.05};
  EXPECT_GE(free_in[0], 10);
  EXPECT_NEAR(forecast_seconds(cost, {300, 10, 100}, 10, free_in), 0.05 + 0.4, 0.1);
}

// Time stands still while threads move, and moves when all have come to rest: batches take as long as the
// test says.
class TimedFunction final : public BatchFunction {
 public:
  TimedFunction(const Clock& clock, std::function<Duration(std::size_t)> duration)
      : clock_(clock), duration_(std::move(duration)) {}
  [[nodiscard]] std::size_t dim() const noexcept override { return 2; }
  std::size_t run(unsigned, const PackedBatch& batch, std::span<void* const>, std::span<float> out) override {
    fake_embeddings(batch, out);
    std::unique_lock lock(mutex_);
    const auto me = running_.emplace(clock_.now() + duration_(batch.ids.size()), false);
    released_.wait(lock, [&] { return me->second; });
    running_.erase(me);
    return batch.ids.size();
  }
  [[nodiscard]] std::size_t running() const {
    const std::lock_guard lock(mutex_);
    return running_.size();
  }
  [[nodiscard]] TimePoint next_end() const {
    const std::lock_guard lock(mutex_);
    return running_.empty() ? TimePoint::max() : running_.begin()->first;
  }
  void release_next() {
    const std::lock_guard lock(mutex_);
    running_.begin()->second = true;
    released_.notify_all();
  }

 private:
  const Clock& clock_;
  std::function<Duration(std::size_t)> duration_;  // guarded by mutex_
  mutable std::mutex mutex_;
  std::condition_variable released_;
  std::multimap<TimePoint, bool> running_;
};

struct Prediction {
  double predicted = 0, actual = 0;
};

// Poisson arrivals of texts of 5 to 128 tokens at `load` times what the threads can do.
std::vector<Prediction> simulate(unsigned threads, double load, int arrivals, unsigned seed) {
  std::mt19937 random(seed), noise_random(seed + 1);
  FakeClock clock;
  std::uniform_real_distribution<double> noise(0.9, 1.1);
  TimedFunction function(clock, [&](std::size_t tokens) {
    return Duration(
        static_cast<Duration::rep>((300e3 + 12e3 * static_cast<double>(tokens)) * noise(noise_random)));
  });
  InlineExecutor executor;
  std::vector<Prediction> out(static_cast<std::size_t>(arrivals));
  Batcher batcher(function, {.threads = threads, .initial_tokens_per_second = 20'000}, clock);
  const auto settle = [&] {
    wait_until([&] {
      const BatcherStats s = batcher.stats();
      return s.answered == s.computed && s.busy_threads == function.running() &&
             (s.queued_items == 0 || s.busy_threads == threads);
    });
  };
  const std::vector<TokenId> ids(128, 1);
  const double capacity = threads * 120 / (300e-6 + 12e-6 * 120);  // tokens/s in full batches
  std::exponential_distribution<double> gap(load * capacity / 23);
  std::lognormal_distribution<double> length(2.8, 0.75);
  TimePoint arrival = clock.now();
  for (std::size_t next = 0;;) {
    settle();
    const TimePoint end = function.next_end();
    if (next == out.size() && end == TimePoint::max()) break;
    if (next < out.size() && arrival <= end) {
      clock.advance(arrival - clock.now());
      const auto tokens = static_cast<std::size_t>(std::clamp(length(random), 5.0, 128.0));
      Prediction& p = out[next++];
      p.predicted = seconds(batcher.predicted_wait(tokens));
      Batcher::Item item{
          .ids = std::span(ids).first(tokens),
          .executor = &executor,
          .done = [&p](auto&&, const BatchTiming& t) { p.actual = seconds(t.finished - t.queued); }};
      EXPECT_TRUE(batcher.submit(std::move(item)));
      arrival += Duration(static_cast<Duration::rep>(gap(random) * 1e9));
    } else {
      clock.advance(end - clock.now());
      const std::uint64_t answered = batcher.stats().answered;
      function.release_next();
      wait_until([&] { return batcher.stats().answered > answered; });
    }
  }
  return out;
}

class ForecastHonesty : public testing::TestWithParam<std::tuple<unsigned, double>> {};

TEST_P(ForecastHonesty, IsWithinThirtyPercentOfTheTruth) {
  const auto [threads, load] = GetParam();
  const std::vector<Prediction> all = simulate(threads, load, 700, 5);
  double predicted = 0, actual = 0;
  std::vector<double> errors;
  for (std::size_t i = 100; i < all.size(); ++i) {  // after it has learnt the rate
    predicted += all[i].predicted;
    actual += all[i].actual;
    errors.push_back(std::abs(all[i].predicted / all[i].actual - 1));
  }
  std::ranges::sort(errors);
  RecordProperty("bias", testing::PrintToString(predicted / actual));
  RecordProperty("median_error", testing::PrintToString(errors[errors.size() / 2]));
  EXPECT_NEAR(predicted / actual, 1, 0.3);
  EXPECT_LT(errors[errors.size() / 2], 0.3);
}

INSTANTIATE_TEST_SUITE_P(Loads, ForecastHonesty,
                         testing::Combine(testing::Values(1U, 2U, 4U),
                                          testing::Values(0.05, 0.4, 0.8, 1.0, 1.5)));

}  // namespace
}  // namespace waybill::embed
