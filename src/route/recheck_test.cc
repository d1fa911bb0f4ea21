#include "route/recheck.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace waybill::route {
namespace {

constexpr std::size_t kDim = 32;
constexpr std::size_t kRoutes = 3;
constexpr std::size_t kPerRoute = 12;

class Recheck : public testing::Test {
 protected:
  Recheck() {
    for (std::uint32_t r = 0; r < kRoutes; ++r) {
      for (std::size_t i = 0; i < kPerRoute; ++i) {
        add_near(r, 0.6F, exact_);
        labels_.push_back(r);
      }
    }
    head_.emplace(
        Head::fit(
            {.embeddings = exact_, .labels = labels_, .dim = kDim, .routes = kRoutes, .out_of_scope = {}})
            .value());
  }

  // A unit vector around the axis of a route.
  void add_near(std::uint32_t route, float spread, std::vector<float>& out) {
    std::vector<float> x(kDim);
    for (float& v : x) v = spread * normal_(random_) / std::sqrt(static_cast<float>(kDim));
    x[route] += 1;
    append_unit(x, out);
  }

  // A unit vector somewhere between two routes.
  void add_between(std::vector<float>& out) {
    std::vector<float> x(kDim);
    for (float& v : x) v = 0.6F * normal_(random_) / std::sqrt(static_cast<float>(kDim));
    const float share = std::uniform_real_distribution<float>(0, 1)(random_);
    const auto route = static_cast<std::uint32_t>(random_() % kRoutes);
    x[route] += share;
    x[(route + 1) % kRoutes] += 1 - share;
    append_unit(std::move(x), out);
  }

  static void append_unit(std::vector<float> x, std::vector<float>& out) {
    float squares = 0;
    for (const float v : x) squares += v * v;
    for (float& v : x) v /= std::sqrt(squares);
    out.insert(out.end(), x.begin(), x.end());
  }

  // The same vectors as a low precision would give them.
  std::vector<float> noisy(const std::vector<float>& from, float noise) {
    std::vector<float> out;
    for (std::size_t i = 0; i < from.size(); i += kDim) {
      std::vector<float> x(from.begin() + static_cast<std::ptrdiff_t>(i),
                           from.begin() + static_cast<std::ptrdiff_t>(i + kDim));
      for (float& v : x) v += noise * normal_(random_) / std::sqrt(static_cast<float>(kDim));
      append_unit(std::move(x), out);
    }
    return out;
  }

  std::mt19937 random_{5};
  std::normal_distribution<float> normal_;
  std::vector<float> exact_;
  std::vector<std::uint32_t> labels_;
  std::optional<Head> head_;
};

TEST_F(Recheck, NothingIsCloseWithoutNoise) {
  const RecheckGuard guard = RecheckGuard::fit(*head_, exact_, exact_);
  EXPECT_EQ(guard.lead(), 0);
  EXPECT_EQ(guard.acceptance(), 0);
  EXPECT_FALSE(
      guard.is_close({.best = 0, .second = 1, .probability = 0.9F, .margin = 0.001F, .accepted = true},
                     head_->thresholds()));
}

TEST_F(Recheck, MoreNoiseMeansWiderBorders) {
  const RecheckGuard little = RecheckGuard::fit(*head_, exact_, noisy(exact_, 0.01F));
  const RecheckGuard much = RecheckGuard::fit(*head_, exact_, noisy(exact_, 0.1F));
  EXPECT_GT(little.lead(), 0);
  EXPECT_GT(much.lead(), 2 * little.lead());
  EXPECT_GT(much.acceptance(), 2 * little.acceptance());
}

TEST_F(Recheck, FewDecisionsThatTheNoiseTurnsEscapeIt) {
  std::vector<float> prompts;
  for (std::size_t i = 0; i < 30000; ++i) add_between(prompts);
  const std::vector<float> fast = noisy(prompts, 0.05F);
  const RecheckGuard guard = RecheckGuard::fit(*head_, exact_, noisy(exact_, 0.05F));
  std::vector<float> probabilities(kRoutes);
  Head::Scratch scratch;
  std::size_t turned = 0, missed = 0, close = 0;
  for (std::size_t i = 0; i < prompts.size(); i += kDim) {
    const HeadDecision a = head_->score(std::span(prompts).subspan(i, kDim), probabilities, scratch);
    const HeadDecision b = head_->score(std::span(fast).subspan(i, kDim), probabilities, scratch);
    const bool same = a.accepted == b.accepted && (!a.accepted || a.best == b.best);
    const bool asks = guard.is_close(b, head_->thresholds());
    turned += same ? 0 : 1;
    missed += !same && !asks ? 1 : 0;
    close += asks ? 1 : 0;
  }
  EXPECT_GT(turned, 200U);
  EXPECT_LE(missed * 12, turned) << "of " << turned << " turned decisions";
  EXPECT_LT(close, 15000U) << "asking about everything would be no guard";
}

TEST_F(Recheck, TwoRejectedRoutesThatAreLevelAreNoCloseCall) {
  const RecheckGuard guard = RecheckGuard::fit(*head_, exact_, noisy(exact_, 0.02F));
  const std::vector<float> thresholds(kRoutes, 0.9F);
  EXPECT_FALSE(guard.is_close({.best = 0, .second = 1, .probability = 0.05F, .margin = 0, .accepted = false},
                              thresholds));
  EXPECT_TRUE(guard.is_close({.best = 0, .second = 1, .probability = 0.97F, .margin = 0, .accepted = true},
                             thresholds));
  EXPECT_TRUE(guard.is_close({.best = 0, .second = 1, .probability = 0.9F, .margin = 50, .accepted = true},
                             thresholds));
}

}  // namespace
}  // namespace waybill::route
