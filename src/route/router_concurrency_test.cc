// Everything that threads may do with one router at once, while its static tier is still being made. Most of
// what can go wrong here is seen by the thread sanitizer only.
#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "embed/random_model.h"
#include "embed/test_model.h"
#include "route/decide_batch.h"
#include "route/router.h"

namespace waybill::route {
namespace {

constexpr std::size_t kWords =
    4000;  // so many that distilling their table takes longer than starting threads
constexpr std::size_t kThreads = 4;
constexpr std::size_t kPrompts = 60;  // for a few buckets of the exact cache: all threads meet in them

embed::ModelConfig tiny_shape() {
  embed::ModelConfig shape = embed::testing::small_shape();
  shape.vocabulary = kWords;
  return shape;
}

config::Config tiny_config(const std::filesystem::path& folder) {
  config::Config config;
  config.cache_folder = folder / "cache";
  config.tiers.cache.max_bytes = 6 << 10;
  for (std::size_t r = 0; r < 3; ++r) {
    config::Route& route = config.routes.emplace_back();
    route.name = route.model = std::string(1, static_cast<char>('a' + r));
    for (std::size_t i = 0; i < 6; ++i) {
      route.utterances.push_back({.text = "w" + std::to_string(100 * r + 10 + i), .position = {}});
    }
  }
  return config;
}

embed::Model load_model(const std::filesystem::path& folder) {
  return embed::Model::load(
             {.folder = folder, .precision = embed::Precision::kF32, .isa = {}, .use_cache_file = false})
      .value();
}

class RouterConcurrencyTest : public testing::Test {
 protected:
  RouterConcurrencyTest() : files_(folder_, tiny_shape(), 1), model_(load_model(folder_.path())) {
    for (std::size_t i = 0; i < kPrompts; ++i) {
      prompts_.push_back("w" + std::to_string(5 + i * 61 % (kWords - 5)) + " w" + std::to_string(100 + i));
    }
    config_ = tiny_config(folder_.path());
    config::Config alone = config_;
    alone.tiers.static_tier.enabled = false;
    const auto router = Router::load(alone, model_).value();
    DecideScratch scratch;
    for (const std::string& prompt : prompts_) expected_.emplace_back(router->decide(prompt, scratch).route);
  }

  // One thread's share: every way to a decision in turn, until the static tier is there and for some turns
  // more.
  void work(const Router& router, std::size_t thread) {
    DecideScratch scratch;
    for (std::size_t i = thread, left = 200; left != 0; ++i) {
      const StaticStatus status = router.static_status();
      if (!status.ready) ++before_ready_;
      if (status.ready || !status.note.empty()) --left;
      decide_once(router, i % kPrompts, i / kPrompts + thread, scratch);
      const RouterCounts counts = router.counts();
      const ExactCacheStats cache = router.cache_stats();
      if (counts.cache > cache.hits || cache.entries > cache.capacity) ++wrong_;
    }
  }

  void decide_once(const Router& router, std::size_t which, std::size_t way, DecideScratch& scratch) {
    const std::string& prompt = prompts_[which];
    switch (way % 4) {
      case 0:
        if (router.decide(prompt, scratch).route != expected_[which]) ++wrong_;
        ++counted_;
        return;
      case 1:
        if (const std::optional<Decision> cheap = router.decide_cheaply(prompt, scratch)) {
          if (cheap->route != expected_[which]) ++wrong_;
          ++counted_;
        }
        return;
      case 2:
        if (const std::optional<Decision> degraded = router.decide_degraded(prompt, scratch)) {
          if (!degraded->degraded && degraded->route != expected_[which]) ++wrong_;
          ++counted_;
        }
        return;
      default:
        if (decide_batch(router, model_, std::span(prompts_).subspan(which, 1), 2, scratch)[0].route !=
            expected_[which]) {
          ++wrong_;
        }
        ++counted_;
    }
  }

  embed::testing::TemporaryFolder folder_;
  embed::testing::RandomModel files_;
  embed::Model model_;
  config::Config config_;
  std::vector<std::string> prompts_, expected_;
  std::atomic<std::size_t> wrong_{0}, counted_{0}, before_ready_{0};
};

TEST_F(RouterConcurrencyTest, ThreadsDecideAsOneDoesWhileTheStaticTierJoins) {
  for (int round = 0; round < 3; ++round) {
    std::filesystem::remove_all(folder_.path() / ".waybill");  // the table: it is to be distilled again
    const auto router = Router::load(config_, model_, {.threads = 2}).value();
    counted_ = 0;
    {
      std::vector<std::jthread> threads;
      for (std::size_t t = 0; t < kThreads; ++t) threads.emplace_back([&, t] { work(*router, t); });
      router->wait_for_static();
    }
    EXPECT_TRUE(router->static_status().ready) << router->static_status().note;
    const RouterCounts counts = router->counts();
    EXPECT_EQ(counts.rule + counts.cache + counts.static_tier + counts.encoder + counts.fallback, counted_);
  }
  EXPECT_EQ(wrong_, 0U);
  EXPECT_GT(before_ready_, 0U) << "decided while it was distilled";
}

TEST_F(RouterConcurrencyTest, ARouterMayGoWhileItsStaticTierIsBeingMade) {
  for (int round = 0; round < 5; ++round) {
    std::filesystem::remove_all(folder_.path() / ".waybill");
    const auto router = Router::load(config_, model_, {.threads = 2}).value();
    DecideScratch scratch;
    EXPECT_EQ(router->decide(prompts_[0], scratch).route, expected_[0]);
  }
}

}  // namespace
}  // namespace waybill::route
