#include "route/decision_service.h"

#include <array>
#include <future>
#include <latch>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "route/service_test.h"
#include "route/test_model.h"

namespace waybill::route {
namespace {

using embed::QueueExecutor;
using std::chrono::milliseconds;
using testing::HasSubstr;

// Holds the computing threads after each batch, before anything is answered, until it is opened.
class Gate {
 public:
  ~Gate() { open(); }
  std::function<void(const ComputedBatch&)> observer() {
    return [this](const ComputedBatch&) {
      std::unique_lock lock(mutex_);
      ++inside_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return open_; });
    };
  }
  void wait_for(std::size_t batches) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return inside_ >= batches; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t inside_ = 0;
  bool open_ = false;
};

class DecisionServiceTest : public testing::Test {
 protected:
  static config::Config encoder_only() {
    config::Config config = small_config();
    config.tiers.static_tier.enabled = false;
    config.tiers.cache.enabled = false;
    return config;
  }
  static DecisionServiceOptions one_thread(double tokens_per_second = 1e9) {
    DecisionServiceOptions options;
    options.batcher.threads = 1;
    options.batcher.initial_tokens_per_second = tokens_per_second;
    return options;
  }
  void serve(const config::Config& config, const DecisionServiceOptions& options = one_thread()) {
    router_ = small_router(config);
    service_ = std::make_unique<DecisionService>(*router_, small_model().model(), texts_, clock_, options);
  }
  Result<DecisionAnswer> decide(DecisionCall call) {
    call.executor = &inline_;
    return answer_of<DecisionAnswer>([&](auto&& done) { return service_->decide(call, std::move(done)); });
  }
  // Begins a call whose answer goes to seen_ through the queue executor.
  bool begin(DecisionCall call) {
    call.executor = &queue_;
    return !service_->decide(call,
                             [this](Result<DecisionAnswer> answer) { seen_.push_back(std::move(answer)); });
  }

  FakeClock clock_;
  InlineExecutor inline_;
  QueueExecutor queue_;
  std::vector<Result<DecisionAnswer>> seen_;
  WorkerPool texts_{{.name = "text"}};
  std::unique_ptr<Router> router_;
  std::unique_ptr<DecisionService> service_;
};

// Of words of all routes, so that some are close calls.
std::vector<std::string> mixed_prompts(std::size_t count) {
  static constexpr std::array kWords = {"rain",   "money", "song",   "tomorrow", "transfer",
                                        "louder", "is it", "a bill", "storm",    "my sister",
                                        "skip",   "warm",  "please", "balance"};
  std::mt19937 random(11);
  std::vector<std::string> prompts;
  for (std::size_t i = 0; i < count; ++i) {
    std::string& prompt = prompts.emplace_back();
    for (std::size_t word = 0; word < 3 + i % 5; ++word) {
      if (word != 0) prompt += ' ';
      prompt += kWords[random() % kWords.size()];
    }
  }
  return prompts;
}

TEST_F(DecisionServiceTest, DecidesAsTheRouterDoesCloseCallsIncluded) {
  config::Config config = small_config();
  config.routes.clear();
  for (const auto& [name, texts] :
       {std::pair("weather",
                  std::vector{"will it rain tomorrow", "how warm is it outside", "is a storm coming"}),
        std::pair("banking",
                  std::vector{"pay this bill", "what is my balance", "transfer money to my sister"}),
        std::pair("music", std::vector{"play some jazz", "skip this song", "turn the music up"})}) {
    config::Route& route = config.routes.emplace_back();
    route.name = route.model = name;
    for (const char* text : texts) route.utterances.push_back({.text = text, .position = {}});
  }
  config.tiers.static_tier.enabled = false;
  const embed::Model fast = load_testing_model(embed::Precision::kInt8);
  const embed::Model exact = load_testing_model(embed::Precision::kF32);
  RouterOptions options;
  options.exact_model = &exact;
  const auto served = Router::load(config, fast, options), alone = Router::load(config, fast, options);
  ASSERT_TRUE(served && alone);
  const SteadyClock clock;
  DecisionService service(**served, fast, texts_, clock);
  DecideScratch scratch;
  for (const std::string& prompt : mixed_prompts(120)) {
    const auto answer = answer_of<DecisionAnswer>([&](auto&& done) {
      return service.decide({.prompt = prompt, .executor = &inline_}, std::move(done));
    });
    ASSERT_TRUE(answer) << answer.error().message;
    const Decision expected = (*alone)->decide(prompt, scratch);
    EXPECT_EQ(answer->decision.route, expected.route) << prompt;
    EXPECT_FLOAT_EQ(answer->decision.score, expected.score) << prompt;
  }
  EXPECT_EQ((*served)->counts().rechecked, (*alone)->counts().rechecked);
  EXPECT_GT((*served)->counts().rechecked, 0U) << "or nothing was close";
}

TEST_F(DecisionServiceTest, ACheapTierAnswersAtOnceAndLeavesDoneAlone) {
  config::Config config = small_config();
  config.tiers.static_tier.enabled = false;
  serve(config);
  ASSERT_TRUE(decide({.prompt = "w30 w40"}));
  bool called = false;
  DecisionService::Completion done = [&called](Result<DecisionAnswer>) { called = true; };
  const auto again = service_->decide({.prompt = "w30 w40", .executor = &inline_}, std::move(done));
  ASSERT_TRUE(again && *again);
  EXPECT_EQ((*again)->decision.tier, Tier::kCache);
  EXPECT_EQ((*again)->timing.tokenized, TimePoint{});
  EXPECT_FALSE(called);
  EXPECT_TRUE(done != nullptr);
}

TEST_F(DecisionServiceTest, WhatWouldWaitTooLongIsDecidedByTheStaticTierAndSaysSo) {
  config::Config config = small_config();
  config.tiers.static_tier.agreement = 1;
  config.tiers.cache.enabled = false;
  DecisionServiceOptions options = one_thread(10);  // a token takes 0.1 s
  options.max_wait = milliseconds(100);
  serve(config, options);
  std::size_t degraded = 0;
  for (std::size_t i = 0; i < 50; ++i) {
    const std::string prompt = word(13 * i) + " " + word(29 * i);
    const auto answer = decide({.prompt = prompt});
    ASSERT_TRUE(answer) << answer.error().message;
    ASSERT_TRUE(answer->decision.tier == Tier::kStatic || answer->decision.tier == Tier::kDefault);
    EXPECT_EQ(answer->timing.queued, TimePoint{});
    degraded += answer->decision.degraded ? 1U : 0U;
  }
  EXPECT_GT(degraded, 0U);
  EXPECT_EQ(service_->stats().degraded, service_->stats().decisions.degraded);
  EXPECT_EQ(service_->stats().batcher.computed, 0U);
}

TEST_F(DecisionServiceTest, ARefusalSaysHowLongItWouldHaveTaken) {
  DecisionServiceOptions options = one_thread(10);
  options.max_wait = milliseconds(100);
  serve(encoder_only(), options);
  DecisionService::Completion done = [](Result<DecisionAnswer>) { FAIL(); };
  const auto answer = service_->decide({.prompt = "hello", .executor = &inline_}, std::move(done));
  ASSERT_TRUE(answer && !*answer);
  EXPECT_EQ(answer->error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(answer->error().retry_after, service_->predicted_wait(3));
  EXPECT_GT(answer->error().retry_after, milliseconds(100));
  EXPECT_TRUE(done != nullptr);
  EXPECT_EQ(service_->stats().refused, 1U);
}

TEST_F(DecisionServiceTest, ACallMayForbidTheStaticTier) {
  config::Config config = small_config();
  config.tiers.static_tier.agreement = 1;
  DecisionServiceOptions options = one_thread(10);
  options.max_wait = milliseconds(100);
  serve(config, options);
  std::size_t refused = 0;
  for (std::size_t i = 0; i < 50; ++i) {
    const auto answer = decide({.prompt = word(13 * i) + " " + word(29 * i), .allow_degraded = false});
    if (answer) {
      EXPECT_FALSE(answer->decision.degraded);
    } else {
      EXPECT_EQ(answer.error().code, ErrorCode::kOverloaded);
      ++refused;
    }
  }
  EXPECT_GT(refused, 0U);
}

TEST_F(DecisionServiceTest, ADeadlineBoundsTheWaitToo) {
  serve(encoder_only(), one_thread(10));
  EXPECT_EQ(decide({.prompt = "hello", .deadline = clock_.now() + milliseconds(10)}).error().code,
            ErrorCode::kOverloaded);
  EXPECT_EQ(decide({.prompt = "hello", .deadline = clock_.now()}).error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_TRUE(decide({.prompt = "hello", .deadline = clock_.now() + std::chrono::seconds(10)}));
}

TEST_F(DecisionServiceTest, WhatExpiresOrIsTakenBackWhileItWaitsIsNotComputed) {
  Gate gate;
  DecisionServiceOptions options = one_thread();
  options.observer = gate.observer();
  serve(encoder_only(), options);
  const std::atomic<bool> cancelled{true};
  std::atomic<bool> later{false};
  EXPECT_EQ(decide({.prompt = "hello", .cancelled = &cancelled}).error().code, ErrorCode::kCancelled);
  ASSERT_TRUE(begin({.prompt = "hello"}));
  gate.wait_for(1);
  ASSERT_TRUE(begin({.prompt = "world", .deadline = clock_.now() + milliseconds(50)}));
  ASSERT_TRUE(begin({.prompt = "w8", .cancelled = &later}));
  ASSERT_TRUE(begin({.prompt = "w9"}));
  later = true;
  clock_.advance(milliseconds(50));
  gate.open();
  embed::wait_until([&] { return queue_.run(), seen_.size() == 4; });
  std::vector<std::string> outcomes;
  for (const auto& answer : seen_) outcomes.emplace_back(answer ? "decided" : to_string(answer.error().code));
  EXPECT_THAT(outcomes,
              testing::UnorderedElementsAre("decided", "deadline_exceeded", "cancelled", "decided"));
  const DecisionStats stats = service_->stats();
  EXPECT_EQ(stats.batcher.computed, 2U);
  EXPECT_EQ(stats.expired, 1U);
  EXPECT_EQ(stats.cancelled, 2U);
}

TEST_F(DecisionServiceTest, WindowsOfALongTextMakeOneDecision) {
  config::Config config = encoder_only();
  config.encoder.long_text = config::LongText::kWindows;
  DecisionServiceOptions options = one_thread();
  options.batcher.threads = 3;
  serve(config, options);
  const auto alone = small_router(config);
  DecideScratch scratch;
  for (std::size_t words = 1; words < 40; ++words) {
    std::string prompt;
    for (std::size_t i = 0; i < words; ++i) prompt += word(31 * words + 17 * i) + " ";
    const auto answer = decide({.prompt = prompt});
    ASSERT_TRUE(answer) << answer.error().message;
    const Decision expected = alone->decide(prompt, scratch);
    EXPECT_EQ(answer->decision.route, expected.route) << prompt;
    EXPECT_FLOAT_EQ(answer->decision.score, expected.score) << prompt;
    EXPECT_EQ(answer->timing.tokens, scratch.ids.size());
  }
  EXPECT_GT(service_->stats().batcher.computed, 39U) << "some had several";
}

TEST_F(DecisionServiceTest, WindowsThatDoNotAllFitAreNotQueuedAtAll) {
  config::Config config = encoder_only();
  config.encoder.long_text = config::LongText::kWindows;
  DecisionServiceOptions options = one_thread(50);
  options.max_wait = milliseconds(300);  // 15 tokens
  serve(config, options);
  std::string prompt;
  for (std::size_t i = 0; i < 20; ++i) prompt += word(i) + " ";
  EXPECT_EQ(decide({.prompt = prompt}).error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(service_->stats().batcher.accepted, 0U);
  EXPECT_TRUE(decide({.prompt = "hello"}));
}

TEST_F(DecisionServiceTest, LongPromptsAreReadOnTheTextThreads) {
  DecisionServiceOptions options = one_thread();
  options.long_prompt = 20;
  serve(small_config(), options);
  const std::string prompt = "w30 w40 w50 w60 w70 w80 w90";
  std::latch hold(1);
  ASSERT_TRUE(texts_.post([&hold] { hold.wait(); }));
  embed::wait_until([&] { return texts_.waiting() == 0; });
  ASSERT_TRUE(begin({.prompt = prompt}));
  EXPECT_EQ(queue_.run(), 0U);
  EXPECT_EQ(service_->stats().waiting_texts, 1U);
  hold.count_down();
  embed::wait_until([&] { return queue_.run() != 0; });
  ASSERT_TRUE(seen_.at(0)) << seen_[0].error().message;
  ASSERT_TRUE(begin({.prompt = prompt})) << "what the cache knows comes late too";
  embed::wait_until([&] { return queue_.run() != 0; });
  EXPECT_EQ(seen_.at(1).value().decision.route, seen_[0]->decision.route);
}

TEST_F(DecisionServiceTest, FullTextThreadsRefuse) {
  WorkerPool full({.name = "text", .threads = 1, .max_waiting = 0});
  DecisionServiceOptions options = one_thread();
  options.long_prompt = 2;
  router_ = small_router(small_config());
  DecisionService service(*router_, small_model().model(), full, clock_, options);
  DecisionService::Completion done = [](Result<DecisionAnswer>) { FAIL(); };
  const auto answer = service.decide({.prompt = "hello", .executor = &inline_}, std::move(done));
  ASSERT_TRUE(answer && !*answer);
  EXPECT_EQ(answer->error().code, ErrorCode::kOverloaded);
  EXPECT_TRUE(done != nullptr);
  const std::vector<std::string_view> prompts = {"hello"};
  const auto all = service.decide_all(prompts, {.executor = &inline_}, [](auto&&) { FAIL(); });
  ASSERT_TRUE(all && !*all);
  EXPECT_EQ(all->error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(service.stats().refused, 2U);
}

TEST_F(DecisionServiceTest, ManyPromptsAreAnsweredInOrder) {
  serve(small_config());
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 500; ++i) texts.push_back(word(i) + " " + word(3 * i % 40));
  const std::vector<std::string_view> prompts(texts.begin(), texts.end());
  const auto answers = answer_of<std::vector<DecisionAnswer>>(
      [&](auto&& done) { return service_->decide_all(prompts, {.executor = &inline_}, std::move(done)); });
  ASSERT_TRUE(answers) << answers.error().message;
  ASSERT_EQ(answers->size(), prompts.size());
  config::Config uncached = small_config();
  const auto alone = small_router(uncached);
  DecideScratch scratch;
  for (std::size_t i = 0; i < prompts.size(); ++i)
    EXPECT_EQ((*answers)[i].decision.route, alone->decide(prompts[i], scratch).route) << prompts[i];
}

TEST_F(DecisionServiceTest, ManyPromptsNeverFillTheQueue) {
  Gate gate;
  DecisionServiceOptions options = one_thread();
  options.batcher.max_batch_tokens = 16;
  options.observer = gate.observer();
  serve(encoder_only(), options);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 500; ++i) texts.push_back(word(i));
  const std::vector<std::string_view> prompts(texts.begin(), texts.end());
  std::promise<Result<std::vector<DecisionAnswer>>> promise;
  ASSERT_FALSE(service_->decide_all(prompts, {.executor = &inline_},
                                    [&](auto answer) { promise.set_value(std::move(answer)); }));
  gate.wait_for(1);
  std::latch pumped(1);
  ASSERT_TRUE(texts_.post([&pumped] { pumped.count_down(); }));
  pumped.wait();
  const embed::BatcherStats stats = service_->stats().batcher;
  EXPECT_LE(stats.queued_tokens + stats.running_tokens, 2 * 16U + 3);
  gate.open();
  EXPECT_TRUE(promise.get_future().get());
}

TEST_F(DecisionServiceTest, OneFailureFailsTheBatchOnce) {
  Gate gate;
  DecisionServiceOptions options = one_thread();
  options.observer = gate.observer();
  serve(encoder_only(), options);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 300; ++i) texts.push_back(word(i));
  const std::vector<std::string_view> prompts(texts.begin(), texts.end());
  std::atomic<bool> cancelled{false};
  std::promise<Result<std::vector<DecisionAnswer>>> promise;
  ASSERT_FALSE(service_->decide_all(prompts, {.executor = &inline_, .cancelled = &cancelled},
                                    [&](auto answer) { promise.set_value(std::move(answer)); }));
  gate.wait_for(1);
  cancelled = true;
  gate.open();
  EXPECT_EQ(promise.get_future().get().error().code, ErrorCode::kCancelled);
  EXPECT_EQ(service_->stats().cancelled, 1U);
}

TEST_F(DecisionServiceTest, ExplainsAsTheRouterDoes) {
  serve(small_config());
  DecideScratch scratch;
  for (std::size_t i = 0; i < 20; ++i) {
    const std::string prompt = word(17 * i) + " " + word(5 * i);
    const auto answer = answer_of<ExplanationAnswer>([&](auto&& done) {
      return service_->explain({.prompt = prompt, .executor = &inline_},
                               {.tier = Tier::kEncoder, .nearest = 2, .runners_up = 2}, std::move(done));
    });
    ASSERT_TRUE(answer) << answer.error().message;
    const Explanation expected = router_->explain(prompt, scratch, Tier::kEncoder, 2, 2);
    EXPECT_EQ(answer->explanation.decision.route, expected.decision.route);
    ASSERT_EQ(answer->explanation.nearest.size(), 2U);
    EXPECT_EQ(answer->explanation.nearest[0].text, expected.nearest[0].text);
    EXPECT_EQ(answer->explanation.runners_up.size(), 2U);
  }
  EXPECT_EQ(router_->counts().encoder + router_->counts().fallback + router_->counts().static_tier, 0U)
      << "not counted";
}

TEST_F(DecisionServiceTest, AnswersWhatWaitsWhenItStops) {
  Gate gate;
  DecisionServiceOptions options = one_thread();
  options.observer = gate.observer();
  serve(encoder_only(), options);
  ASSERT_TRUE(begin({.prompt = "hello"}));
  gate.wait_for(1);
  for (std::size_t i = 0; i < 10; ++i) ASSERT_TRUE(begin({.prompt = word(i)}));
  std::jthread stopper([&] { service_->stop(); });
  embed::wait_until([&] { return queue_.run(), seen_.size() == 10; });
  for (const auto& answer : seen_) EXPECT_EQ(answer.error().code, ErrorCode::kShuttingDown);
  gate.open();
  stopper.join();
  embed::wait_until([&] { return queue_.run(), seen_.size() == 11; });
  EXPECT_TRUE(seen_.back());
  EXPECT_EQ(decide({.prompt = "late"}).error().code, ErrorCode::kShuttingDown);
  EXPECT_EQ(service_->stats().stopped, 11U);
}

TEST_F(DecisionServiceTest, AnExecutorThatDropsItsWorkStillAnswersOnce) {
  serve(encoder_only());
  for (std::size_t i = 0; i < 5; ++i) ASSERT_TRUE(begin({.prompt = word(i)}));
  embed::wait_until([&] { return service_->stats().batcher.answered == 5; });
  service_.reset();  // answers may come after the service
  queue_.drop();
  ASSERT_EQ(seen_.size(), 5U);
  for (const auto& answer : seen_) EXPECT_EQ(answer.error().code, ErrorCode::kShuttingDown);
}

TEST_F(DecisionServiceTest, TellsTheObserverOfEveryBatch) {
  std::atomic<std::size_t> sequences{0}, tokens{0};
  DecisionServiceOptions options = one_thread();
  options.observer = [&](const ComputedBatch& batch) {
    sequences += batch.sequences;
    tokens += batch.tokens;
  };
  serve(encoder_only(), options);
  for (std::size_t i = 0; i < 20; ++i) ASSERT_TRUE(decide({.prompt = word(i)}));
  EXPECT_EQ(sequences, 20U);
  EXPECT_EQ(tokens, 60U);
}

}  // namespace
}  // namespace waybill::route
