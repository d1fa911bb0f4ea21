// Four event loops hammer one engine after another with deadlines and cancellations. What it asserts is
// small; the thread sanitizer sees the rest.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "route/engine.h"
#include "route/engine_slot.h"
#include "route/service_test.h"

namespace waybill::route {
namespace {

constexpr std::size_t kLoops = 4, kCalls = 1500, kMostInFlight = 40;

// One call and all that has to live until its answer.
struct Call {
  std::shared_ptr<const Engine> engine;
  std::vector<std::string> texts;
  std::vector<std::string_view> prompts;
  std::vector<embed::EmbeddingInput> inputs;
  std::atomic<bool> cancelled{false};
  int answers = 0;
};

class EventLoop {
 public:
  EventLoop(EngineSlot& slot, unsigned seed) : slot_(slot), random_(seed) {}

  void run() {
    for (std::size_t i = 0; i < kCalls; ++i) {
      begin(calls_.emplace_back());
      if (pick(4) == 0 && calls_.size() > 5) calls_[calls_.size() - 1 - pick(5)].cancelled = true;
      while (in_flight_ > kMostInFlight) executor_.run();
      if (pick(3) == 0) executor_.run();
    }
    while (in_flight_ != 0) executor_.run();
  }

  [[nodiscard]] std::size_t answered_once() const {
    return static_cast<std::size_t>(std::ranges::count(calls_, 1, &Call::answers));
  }
  [[nodiscard]] std::size_t succeeded() const { return succeeded_; }

 private:
  std::size_t pick(std::size_t n) { return random_() % n; }

  template <class Answer>
  void ended(Call& call, const Result<Answer>& answer) {
    ++call.answers;
    succeeded_ += answer ? 1U : 0U;
    call.engine.reset();
    --in_flight_;
  }
  template <class Answer, class Start>
  void start(Call& call, const Start& begin) {
    ++in_flight_;
    auto at_once = begin([this, &call](Result<Answer> answer) { ended(call, answer); });
    if (at_once) ended(call, *at_once);
  }

  void begin(Call& call) {
    call.engine = slot_.current();
    const std::size_t count = pick(5) == 0 ? 1 + pick(60) : 1;
    for (std::size_t i = 0; i < count; ++i) {
      std::string& text = call.texts.emplace_back();
      for (std::size_t w = 0; w <= pick(12); ++w) text += word(pick(490)) + " ";
    }
    for (const std::string& text : call.texts) {
      call.prompts.emplace_back(text);
      call.inputs.emplace_back(std::string_view(text));
    }
    const TimePoint deadline =
        pick(3) == 0 ? TimePoint::max() : clock_.now() + std::chrono::microseconds(pick(8000));
    const DecisionCall one{.prompt = call.prompts[0],
                           .deadline = deadline,
                           .executor = &executor_,
                           .cancelled = &call.cancelled,
                           .allow_degraded = pick(2) == 0};
    DecisionService& decisions = call.engine->decisions();
    switch (pick(6)) {
      case 0:
        return start<ExplanationAnswer>(
            call, [&](auto&& done) { return decisions.explain(one, {}, std::move(done)); });
      case 1:
        return start<std::vector<DecisionAnswer>>(call, [&](auto&& done) {
          return decisions.decide_all(call.prompts, {deadline, &executor_, &call.cancelled, true},
                                      std::move(done));
        });
      case 2:
        return start<embed::EmbeddingAnswer>(call, [&](auto&& done) {
          return call.engine->embeddings().embed({call.inputs, deadline, &executor_, &call.cancelled},
                                                 std::move(done));
        });
      default:
        return start<DecisionAnswer>(call,
                                     [&](auto&& done) { return decisions.decide(one, std::move(done)); });
    }
  }

  EngineSlot& slot_;
  std::mt19937 random_;
  SteadyClock clock_;
  embed::QueueExecutor executor_;
  std::deque<Call> calls_;  // stay where they are
  std::size_t in_flight_ = 0, succeeded_ = 0;
};

config::Config stressed(std::size_t generation) {
  config::Config config = small_config();
  config.encoder.long_text = generation % 2 == 0 ? config::LongText::kWindows : config::LongText::kHead;
  config.admission.max_wait = std::chrono::milliseconds(2);
  config.admission.max_queue_tokens = 400;
  config.tiers.cache.max_bytes = 1U << 14;
  return config;
}

TEST(EngineStress, EveryCallIsAnsweredOnceWhileEnginesComeAndGo) {
  auto first = load_engine(stressed(0));
  ASSERT_TRUE(first) << first.error().message;
  EngineSlot slot(std::move(*first));
  std::vector<std::unique_ptr<EventLoop>> loops;
  std::vector<std::thread> threads;
  std::atomic<std::size_t> running{kLoops};
  for (unsigned seed = 0; seed < kLoops; ++seed) loops.push_back(std::make_unique<EventLoop>(slot, seed));
  for (const auto& loop : loops) {
    threads.emplace_back([&loop, &running] {
      loop->run();
      --running;
    });
  }
  std::size_t generation = 0;
  while (running != 0) {
    auto next = load_engine(stressed(++generation), {}, slot.current().get());
    ASSERT_TRUE(next) << next.error().message;
    slot.replace(std::move(*next));
    (void)slot.current()->decisions().stats();
    if (generation % 5 == 4)
      const_cast<Engine&>(*slot.current()).stop();  // as an engine that ends under load
  }
  for (std::thread& thread : threads) thread.join();
  std::size_t succeeded = 0;
  for (const auto& loop : loops) {
    EXPECT_EQ(loop->answered_once(), kCalls);
    succeeded += loop->succeeded();
  }
  EXPECT_GT(succeeded, 0U) << "how many depends on the machine: their deadlines are short";
  EXPECT_GT(generation, 2U);
}

}  // namespace
}  // namespace waybill::route
