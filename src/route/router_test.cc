// The router on the real model with a handful of routes.
#include "route/router.h"

#include <cstdlib>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "route/fit.h"
#include "route/test_model.h"

namespace waybill::route {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

config::Route make_route(std::string name, std::vector<std::string> texts) {
  config::Route route;
  route.name = std::move(name);
  route.model = route.name + "-model";
  for (std::string& text : texts) route.utterances.push_back({.text = std::move(text), .position = {}});
  return route;
}

std::vector<config::Route> three_routes() {
  return {make_route("weather", {"will it rain tomorrow", "what is the weather like in Paris",
                                 "is it going to snow this weekend", "how hot will it get today",
                                 "do I need an umbrella"}),
          make_route("banking",
                     {"what is my account balance", "transfer money to my savings account",
                      "my credit card was stolen", "how do I pay this bill", "show my last transactions"}),
          make_route("music", {"play some jazz", "skip this song", "turn up the volume",
                               "who sings this track", "add this song to my playlist"})};
}

config::Rule make_rule(std::string name, std::string word) {
  config::Rule rule;
  rule.name = std::move(name);
  config::Condition::Keyword keyword;
  keyword.words = {std::move(word)};
  rule.when.is = keyword;
  return rule;
}

class RouterTest : public testing::Test {
 protected:
  RouterTest() {
    folder_ = std::filesystem::temp_directory_path() /
              ("waybill-router-" + std::to_string(::getpid()) + "-" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    config_.cache_folder = folder_;
    config_.routes = three_routes();
    config_.default_model = "general-model";
    config_.tiers.static_tier.enabled = false;
  }
  ~RouterTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Router> load(const RouterOptions& options = {}) const {
    Result<std::unique_ptr<Router>> router = Router::load(config_, testing_model(), options);
    EXPECT_TRUE(router) << (router ? "" : router.error().message);
    return router ? std::move(*router) : nullptr;
  }

  std::filesystem::path folder_;
  config::Config config_;
  DecideScratch scratch_;
};

TEST_F(RouterTest, TakesTheRouteThatThePromptMeans) {
  const auto router = load();
  const Decision decision = router->decide("is there a thunderstorm coming", scratch_);
  EXPECT_EQ(decision.route, "weather");
  EXPECT_EQ(decision.model, "weather-model");
  EXPECT_EQ(decision.tier, Tier::kEncoder);
  EXPECT_EQ(decision.reason, Reason::kScore);
  EXPECT_GT(decision.score, 0.5F);
  EXPECT_EQ(router->decide("send 50 euros to my landlord", scratch_).route, "banking");
  EXPECT_EQ(router->counts().encoder, 2U);
}

TEST_F(RouterTest, TheSamePromptAgainComesFromTheExactCache) {
  const auto router = load();
  const Decision first = router->decide("Is there a thunderstorm coming", scratch_);
  const Decision again = router->decide("  is there a\n thunderstorm coming ", scratch_);
  EXPECT_EQ(again.tier, Tier::kCache);
  EXPECT_EQ(again.reason, Reason::kCache);
  EXPECT_EQ(again.route, first.route);
  EXPECT_EQ(again.model, first.model);
  EXPECT_EQ(again.score, first.score);
  EXPECT_EQ(router->cache_stats().hits, 1U);
  EXPECT_EQ(router->explain("Is there a thunderstorm coming", scratch_).decision.tier, Tier::kEncoder);
}

TEST_F(RouterTest, WithoutACacheEveryPromptIsDecidedAnew) {
  config_.tiers.cache.enabled = false;
  const auto router = load();
  (void)router->decide("is there a thunderstorm coming", scratch_);
  EXPECT_EQ(router->decide("is there a thunderstorm coming", scratch_).tier, Tier::kEncoder);
}

TEST_F(RouterTest, BelowItsThresholdThePromptGoesToTheDefaultRoute) {
  for (config::Route& route : config_.routes) route.threshold = 1.0;
  const auto router = load();
  const Decision decision = router->decide("is there a thunderstorm coming", scratch_);
  EXPECT_EQ(decision.route, "default");
  EXPECT_EQ(decision.model, "general-model");
  EXPECT_EQ(decision.index, Decision::kNoRoute);
  EXPECT_EQ(decision.tier, Tier::kDefault);
  EXPECT_EQ(decision.reason, Reason::kBelowThreshold);
  const Decision again = router->decide("is there a thunderstorm coming", scratch_);
  EXPECT_EQ(again.tier, Tier::kCache);
  EXPECT_EQ(again.route, "default");
  EXPECT_EQ(again.model, "general-model");
}

TEST_F(RouterTest, TheDefaultMayBeOneOfTheRoutes) {
  for (config::Route& route : config_.routes) route.threshold = 1.0;
  config_.default_route = "music";
  config_.default_model.clear();
  const auto router = load();
  const Decision decision = router->decide("is there a thunderstorm coming", scratch_);
  EXPECT_EQ(decision.route, "music");
  EXPECT_EQ(decision.model, "music-model");
  EXPECT_EQ(decision.index, 2U);
  EXPECT_EQ(decision.reason, Reason::kBelowThreshold);
}

TEST_F(RouterTest, ARuleDecidesBeforeAnythingElse) {
  config_.rules.push_back(make_rule("umbrellas are sold by the bank", "umbrella"));
  config_.rules.back().route = "banking";
  const auto router = load();
  const Decision decision = router->decide("do I need an UMBRELLA", scratch_);
  EXPECT_EQ(decision.route, "banking");
  EXPECT_EQ(decision.tier, Tier::kRule);
  EXPECT_EQ(decision.rule, "umbrellas are sold by the bank");
  EXPECT_EQ(router->decide("will it rain", scratch_).route, "weather");
  EXPECT_EQ(router->counts().rule, 1U);
}

TEST_F(RouterTest, AVetoFallsToTheNextBestAboveItsThreshold) {
  for (config::Route& route : config_.routes) route.threshold = 0;
  config_.rules.push_back(make_rule("no weather for pirates", "arr"));
  config_.rules.back().veto = {"weather"};
  const auto router = load();
  const Decision decision = router->decide("arr, will it rain on my money", scratch_);
  EXPECT_EQ(decision.route, "banking");
  EXPECT_EQ(decision.reason, Reason::kVetoed);
  EXPECT_EQ(decision.rule, "no weather for pirates");
  const Decision again = router->decide("arr, will it rain on my money", scratch_);
  EXPECT_EQ(again.tier, Tier::kCache);
  EXPECT_EQ(again.route, "banking");
  EXPECT_EQ(again.rule, "no weather for pirates");
}

TEST_F(RouterTest, AVetoWithNothingElseAboveItsThresholdGivesTheDefault) {
  for (config::Route& route : config_.routes) route.threshold = 0.9;
  config_.rules.push_back(make_rule("no weather for pirates", "arr"));
  config_.rules.back().veto = {"weather"};
  const auto router = load();
  const Decision decision = router->decide("arr, will it rain tomorrow", scratch_);
  EXPECT_EQ(decision.route, "default");
  EXPECT_EQ(decision.reason, Reason::kVetoed);
  EXPECT_EQ(router->decide("arr, play some jazz", scratch_).route, "music")
      << "a veto of another route changes nothing";
}

TEST_F(RouterTest, TheTwoHalvesOfADecisionMakeTheWhole) {
  const auto whole = load();
  const auto halves = load();
  for (const std::string prompt : {"is it cold outside", "freeze my card", "what is the meaning of life"}) {
    ASSERT_FALSE(halves->decide_cheaply(prompt, scratch_));
    std::vector<float> embedding(testing_model().dim());
    embed::Workspace workspace;
    testing_model().forward({scratch_.ids, scratch_.offsets}, embedding, workspace);
    const Decision two = (halves->decide_embedding(prompt, embedding, scratch_)).value();
    const Decision one = whole->decide(prompt, scratch_);
    EXPECT_EQ(one.route, two.route);
    EXPECT_EQ(one.score, two.score);
    EXPECT_TRUE(halves->decide_cheaply(prompt, scratch_)) << "remembered";
  }
}

TEST_F(RouterTest, ExplainsWithRunnersUpAndNearestUtterances) {
  const auto router = load();
  const Explanation explanation = router->explain("will it rain", scratch_, std::nullopt, 2, 3);
  EXPECT_EQ(explanation.decision.route, "weather");
  ASSERT_EQ(explanation.runners_up.size(), 3U);
  EXPECT_EQ(explanation.runners_up[0].route, 0U);
  EXPECT_GE(explanation.runners_up[0].score, explanation.runners_up[1].score);
  ASSERT_EQ(explanation.nearest.size(), 2U);
  EXPECT_EQ(explanation.nearest[0].text, "will it rain tomorrow");
  EXPECT_EQ(explanation.nearest[0].route, 0U);
  EXPECT_EQ(explanation.threshold, router->routes()[0].threshold);
  EXPECT_EQ(router->counts().encoder, 0U) << "an explanation is no decision";
}

TEST_F(RouterTest, AnyBytesAreAPrompt) {
  const auto router = load();
  const std::string with_nul("will it\0 rain", 13);
  for (const std::string& prompt :
       {std::string(), std::string("\0", 1), with_nul, std::string(1'000'000, ' '),
        std::string(10'000'000, 'x'), std::string("\xC3\x28\xFF\xFE\xED\xA0\x80")}) {
    const Decision decision = router->decide(prompt, scratch_);
    EXPECT_THAT(decision.route, testing::Not(IsEmpty()));
    const Decision again = router->decide(prompt, scratch_);
    EXPECT_EQ(decision.route, again.route);
  }
}

TEST_F(RouterTest, InvalidUtf8IsDecidedAsTheReplacementCharacter) {
  const auto router = load();
  for (const auto& [bad, good] :
       {std::pair("will it rain \xFF tomorrow", "will it rain \xEF\xBF\xBD tomorrow"),
        std::pair("play\xC3 jazz", "play\xEF\xBF\xBD jazz")}) {
    const Decision decision = router->decide(bad, scratch_);
    const Decision expected = router->decide(good, scratch_);
    EXPECT_EQ(decision.route, expected.route);
    EXPECT_EQ(decision.score, expected.score);
  }
}

TEST_F(RouterTest, WithoutRoutesEverythingGoesToTheDefault) {
  config_.routes.clear();
  const auto router = load();
  for (int i = 0; i < 2; ++i) {
    const Decision decision = router->decide("will it rain", scratch_);
    EXPECT_EQ(decision.route, "default");
    EXPECT_EQ(decision.model, "general-model");
    EXPECT_EQ(decision.reason, Reason::kNoRoutes);
  }
  EXPECT_EQ(router->explain("will it rain", scratch_).decision.reason, Reason::kNoRoutes);
  EXPECT_TRUE(router->decide_degraded("will it rain", scratch_));
}

TEST_F(RouterTest, OneRouteIsEnough) {
  config_.routes.resize(1);
  const auto router = load();
  EXPECT_EQ(router->decide("will it rain tomorrow", scratch_).route, "weather");
  EXPECT_EQ(router->explain("will it rain", scratch_).runners_up.size(), 1U);
}

TEST_F(RouterTest, OneUtteranceARouteIsEnough) {
  for (config::Route& route : config_.routes) route.utterances.resize(1);
  const auto router = load();
  EXPECT_EQ(router->explain("will it rain tomorrow", scratch_).runners_up[0].route, 0U);
}

TEST_F(RouterTest, AnUtteranceInTwoRoutesLeavesTheOthersAlone) {
  config_.routes[1].utterances.push_back(config_.routes[0].utterances[0]);
  const auto router = load();
  EXPECT_EQ(router->decide("is there a thunderstorm coming", scratch_).route, "weather");
  EXPECT_EQ(router->decide("send 50 euros to my landlord", scratch_).route, "banking");
  const Explanation torn = router->explain("will it rain tomorrow", scratch_);
  EXPECT_LT(torn.runners_up[0].score, 0.95F) << "it stands in two routes, and no probability can be near one";
}

TEST_F(RouterTest, ARestartEmbedsAndFitsNothing) {
  const auto first = load();
  EXPECT_EQ(first->load_stats().embedded, 15U);
  EXPECT_FALSE(first->load_stats().head_from_cache);
  const auto second = load();
  EXPECT_EQ(second->load_stats().embedded, 0U);
  EXPECT_TRUE(second->load_stats().head_from_cache);
  EXPECT_THAT(second->load_stats().notes, IsEmpty());
  EXPECT_EQ(first->decide("is it cold", scratch_).score, second->decide("is it cold", scratch_).score);

  config_.routes[0].utterances.push_back({.text = "is it foggy", .position = {}});
  const auto third = load();
  EXPECT_EQ(third->load_stats().embedded, 1U) << "only what is new";
  EXPECT_FALSE(third->load_stats().head_from_cache);
}

TEST_F(RouterTest, WorksWhereItCannotCacheAndSaysSo) {
  std::ofstream(folder_.string()) << "a file where the folder should be";
  const auto router = load();
  EXPECT_EQ(router->decide("is there a thunderstorm coming", scratch_).route, "weather");
  EXPECT_THAT(router->load_stats().notes, testing::Contains(HasSubstr("utterance cache not")));
}

TEST_F(RouterTest, ADamagedCacheIsMadeAnew) {
  (void)load();
  for (const auto& file : std::filesystem::directory_iterator(folder_)) {
    std::ofstream(file.path(), std::ios::binary | std::ios::trunc) << "rubbish";
  }
  const auto router = load();
  EXPECT_EQ(router->load_stats().embedded, 15U);
  EXPECT_THAT(router->load_stats().notes, testing::Contains(HasSubstr("damaged")));
  EXPECT_EQ(load()->load_stats().embedded, 0U);
}

TEST_F(RouterTest, WhatFitHasLeftCountsAsUtterances) {
  const Dataset examples{.name = "fit",
                         .examples = {{"is it foggy\tin London\n", "weather", 1},
                                      {"tell me a joke", "oos", 2},
                                      {"gone", "no such route", 3}}};
  ASSERT_TRUE(save_fit(config_, examples));
  const auto router = load();
  EXPECT_EQ(router->load_stats().utterances, 16U);
  EXPECT_EQ(router->load_stats().out_of_scope, 1U);
  EXPECT_EQ(router->load_stats().fit_examples, 2U);
  EXPECT_THAT(router->load_stats().notes, testing::Contains(HasSubstr("name no route")));
  EXPECT_EQ(router->explain("is it foggy in London", scratch_).nearest[0].text, "is it foggy in London ");
  EXPECT_EQ(load({.use_fit = false})->load_stats().utterances, 15U);
}

TEST_F(RouterTest, AFitFileThatCannotBeReadIsAnErrorWithItsLine) {
  ASSERT_TRUE(write_file_atomically(fit_file(config_), "weather\tfine\nno tab\n"));
  const auto router = Router::load(config_, testing_model());
  ASSERT_FALSE(router);
  EXPECT_THAT(router.error().message, HasSubstr("fit.tsv:2"));
}

TEST_F(RouterTest, TheStaticTierAnswersUnderOverloadAndSaysSo) {
  config_.tiers.static_tier.enabled = true;
  for (config::Route& route : config_.routes) route.threshold = 0;
  const auto router = load({.wait_for_static = true});
  ASSERT_TRUE(router->static_status().ready) << router->static_status().note;
  const auto decision = router->decide_degraded("will it rain in Paris tomorrow", scratch_);
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->route, "weather");
  EXPECT_EQ(decision->tier, Tier::kStatic);
  EXPECT_EQ(decision->reason, Reason::kOverload);
  EXPECT_TRUE(decision->degraded);
  EXPECT_EQ(router->decide("will it rain in Paris tomorrow", scratch_).tier, Tier::kEncoder)
      << "degraded decisions are not remembered";
  EXPECT_FALSE(router->decide_degraded("will it rain in Paris tomorrow", scratch_)->degraded)
      << "but what the encoder said is";
  EXPECT_EQ(router->counts().degraded, 1U);
}

TEST_F(RouterTest, WithFewUtterancesTheStaticTierNeverDecidesAlone) {
  config_.tiers.static_tier.enabled = true;
  const auto router = load({.wait_for_static = true});
  EXPECT_EQ(router->static_status().expected_share, 0);
  EXPECT_FALSE(router->decide_cheaply("will it rain tomorrow", scratch_));
}

TEST_F(RouterTest, WithoutAStaticTierThereIsNoDegradedAnswer) {
  const auto disabled = load();
  EXPECT_FALSE(disabled->decide_degraded("will it rain", scratch_));
  config_.tiers.static_tier.enabled = true;
  config_.tiers.static_tier.when_overloaded = false;
  EXPECT_FALSE(load({.wait_for_static = true})->decide_degraded("will it rain", scratch_));
}

TEST_F(RouterTest, TheStaticTierJoinsWhenItIsReady) {
  config_.tiers.static_tier.enabled = true;
  const auto router = load();
  EXPECT_EQ(router->decide("is there a thunderstorm coming", scratch_).route, "weather")
      << "whether it is there or not";
  router->wait_for_static();
  EXPECT_TRUE(router->static_status().ready) << router->static_status().note;
  EXPECT_TRUE(router->decide_degraded("skip this song please", scratch_));
}

TEST_F(RouterTest, ManyThreadsDecideAsOneDoes) {
  config_.tiers.static_tier.enabled = true;
  const std::vector<std::string> prompts = {
      "is it cold outside",       "freeze my card", "louder please",      "what is love",
      "how much money do I have", "next song",      "any sunshine today", ""};
  const auto alone = load();
  std::vector<std::string> expected;
  for (const std::string& prompt : prompts) expected.emplace_back(alone->decide(prompt, scratch_).route);
  const auto shared = load();
  std::atomic<int> different{0};
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        DecideScratch scratch;
        for (std::size_t i = 0; i < 100; ++i) {
          const std::size_t p = (i * 7 + t) % prompts.size();
          if (shared->decide(prompts[p], scratch).route != expected[p]) ++different;
        }
      });
    }
  }
  EXPECT_EQ(different, 0);
  const RouterCounts counts = shared->counts();
  EXPECT_EQ(counts.rule + counts.cache + counts.static_tier + counts.encoder + counts.fallback, 400U);
}

}  // namespace
}  // namespace waybill::route
