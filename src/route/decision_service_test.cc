#include "route/decision_service.h"

#include <array>
#include <future>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "route/test_model.h"

namespace waybill::route {
namespace {

using testing::HasSubstr;

config::Config three_routes() {
  config::Config config;
  config.cache_folder =
      std::filesystem::temp_directory_path() / ("waybill-service-" + std::to_string(::getpid()));
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
  return config;
}

std::unique_ptr<Router> router_of(const config::Config& config, const embed::Model& model,
                                  const embed::Model* exact = nullptr) {
  RouterOptions options;
  options.wait_for_static = true;
  options.exact_model = exact;
  auto router = Router::load(config, model, options);
  if (!router) throw std::runtime_error(router.error().message);
  return std::move(*router);
}

Result<DecisionAnswer> answer_of(DecisionService& service, const DecisionCall& call) {
  std::promise<Result<DecisionAnswer>> promise;
  auto at_once = service.decide(
      call, [&promise](Result<DecisionAnswer> answer) { promise.set_value(std::move(answer)); });
  return at_once ? *std::move(at_once) : promise.get_future().get();
}

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

TEST(DecisionService, DecidesAsTheRouterDoes) {
  config::Config config = three_routes();
  config.tiers.static_tier.enabled = false;
  const embed::Model fast = load_testing_model(embed::Precision::kInt8);
  const embed::Model exact = load_testing_model(embed::Precision::kF32);
  const auto served = router_of(config, fast, &exact), alone = router_of(config, fast, &exact);
  WorkerPool texts({.name = "text"});
  SteadyClock clock;
  InlineExecutor executor;
  DecisionService service(*served, fast, texts, clock);
  DecideScratch scratch;
  for (const std::string& prompt : mixed_prompts(120)) {
    const auto answer = answer_of(service, {.prompt = prompt, .executor = &executor});
    ASSERT_TRUE(answer) << answer.error().message;
    const Decision expected = alone->decide(prompt, scratch);
    EXPECT_EQ(answer->decision.route, expected.route) << prompt;
    EXPECT_FLOAT_EQ(answer->decision.score, expected.score) << prompt;
    EXPECT_GT(answer->timing.tokens, 2U);
  }
  EXPECT_EQ(served->counts().rechecked, alone->counts().rechecked);
  EXPECT_GT(served->counts().rechecked, 0U) << "or nothing was close";
}

}  // namespace
}  // namespace waybill::route
