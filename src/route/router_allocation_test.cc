#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/allocation_count_test.h"
#include "route/decision_service.h"
#include "route/router.h"
#include "route/service_test.h"
#include "route/test_model.h"

namespace waybill::route {
namespace {

TEST(DecisionServiceAllocation, NeitherTheCacheNorTheEncoderAllocatesAfterWarmUp) {
  config::Config config = small_config();
  config.tiers.static_tier.enabled = false;
  const auto router = small_router(config);
  WorkerPool texts({.name = "text"});
  const SteadyClock clock;
  InlineExecutor executor;
  DecisionServiceOptions options;
  options.batcher.threads = 1;
  DecisionService service(*router, small_model().model(), texts, clock, options);
  std::vector<std::string> prompts;
  for (std::size_t i = 0; i < 300; ++i) prompts.push_back(word(i) + " " + word(7 * i));
  std::atomic<std::size_t> answered = 0, failed = 0;
  const auto decide_all_of = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t before = answered;
      const auto at_once =
          service.decide({.prompt = prompts[i], .executor = &executor}, [&](Result<DecisionAnswer> answer) {
            failed += answer ? 0U : 1U;
            ++answered;
          });
      while (!at_once && answered == before) std::this_thread::yield();
    }
  };
  decide_all_of(0, 100);
  std::size_t before = allocation_count();
  decide_all_of(100, 300);  // encoder
  EXPECT_EQ(allocation_count() - before, 0U) << "in 200 decisions by the encoder";
  before = allocation_count();
  decide_all_of(100, 300);  // cache
  EXPECT_EQ(allocation_count() - before, 0U) << "in 200 decisions by the cache";
  EXPECT_EQ(failed, 0U);
  EXPECT_EQ(router->cache_stats().hits, 200U);
}

TEST(RouterAllocation, NoTierAllocatesAfterWarmUp) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("waybill-allocation-" + std::to_string(::getpid()));
  config::Config config;
  config.cache_folder = folder;
  for (const auto& [name, text] :
       {std::pair("weather", "will it rain tomorrow"), std::pair("banking", "pay this bill"),
        std::pair("music", "play some jazz")}) {
    config::Route& route = config.routes.emplace_back();
    route.name = route.model = name;
    route.utterances.push_back({.text = text, .position = {}});
  }
  const embed::Model exact = load_testing_model(embed::Precision::kF32);
  RouterOptions options;
  options.wait_for_static = true;
  options.exact_model = &exact;
  const auto loaded = Router::load(config, testing_model(), options);
  ASSERT_TRUE(loaded) << loaded.error().message;
  const Router& router = **loaded;

  std::vector<std::string> prompts;
  for (int i = 0; i < 60; ++i) {
    prompts.push_back("is it going to rain or shall I play song number " + std::to_string(i));
  }
  DecideScratch scratch;
  for (std::size_t i = 0; i < 20; ++i) {
    (void)router.decide(prompts[i], scratch);
    (void)router.decide_degraded(prompts[59 - i], scratch);
  }
  const std::size_t before = allocation_count();
  for (std::size_t i = 20; i < 40; ++i) {
    (void)router.decide_degraded(prompts[i], scratch);  // static
    (void)router.decide(prompts[i], scratch);           // encoder
    (void)router.decide(prompts[i], scratch);           // cache
  }
  EXPECT_EQ(allocation_count() - before, 0U) << "in 60 decisions";
  EXPECT_GE(router.cache_stats().hits, 20U);
  const std::vector<int> proof(100);
  EXPECT_GT(allocation_count() - before, 0U) << "and the counter counts";
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace waybill::route
