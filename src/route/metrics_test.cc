#include "route/metrics.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace waybill::route {
namespace {

using testing::ElementsAre;

constexpr std::uint32_t kNone = Decision::kNoRoute;
const std::vector<std::string> kRoutes = {"a", "b", "c"};

TEST(Metrics, AccuracySetsThresholdsAsideAndTheRestDoesNot) {
  const std::vector<Judgement> judgements = {
      {.label = 0, .best = 0, .decided = 0, .score = 0.9F},
      {.label = 0, .best = 0, .decided = kNone, .score = 0.3F},  // right, but rejected
      {.label = 1, .best = 0, .decided = 0, .score = 0.8F},
      {.label = 1, .best = 1, .decided = 1, .score = 0.7F},
      {.label = kNone, .best = 2, .decided = kNone, .score = 0.2F},
      {.label = kNone, .best = 1, .decided = 1, .score = 0.6F},
  };
  const Metrics m = compute_metrics(judgements, kRoutes);
  EXPECT_EQ(m.in_scope, 4U);
  EXPECT_EQ(m.out_of_scope, 2U);
  EXPECT_DOUBLE_EQ(m.accuracy, 0.75);
  EXPECT_DOUBLE_EQ(m.kept, 0.75);
  EXPECT_DOUBLE_EQ(m.correct_and_kept, 0.5);
  EXPECT_DOUBLE_EQ(m.out_of_scope_recall, 0.5);
  EXPECT_DOUBLE_EQ(m.decision_accuracy, 0.5);
  EXPECT_DOUBLE_EQ(m.out_of_scope_auroc, 7.0 / 8);  // only 0.3 against 0.6 is the wrong way round
}

TEST(Metrics, PrecisionAndRecallPerRouteWithTheDefaultLast) {
  const std::vector<Judgement> judgements = {{.label = 0, .best = 0, .decided = 0, .score = 1},
                                             {.label = 0, .best = 1, .decided = 1, .score = 1},
                                             {.label = 1, .best = 1, .decided = 1, .score = 1},
                                             {.label = 1, .best = 1, .decided = kNone, .score = 1},
                                             {.label = 1, .best = 0, .decided = 0, .score = 1},
                                             {.label = 0, .best = 1, .decided = 1, .score = 1}};
  const Metrics m = compute_metrics(judgements, kRoutes);
  ASSERT_EQ(m.routes.size(), 4U);
  EXPECT_DOUBLE_EQ(m.routes[0].precision(), 0.5);
  EXPECT_DOUBLE_EQ(m.routes[0].recall(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(m.routes[0].f1(), 0.4);
  EXPECT_DOUBLE_EQ(m.routes[1].recall(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(m.routes[2].f1(), 0) << "neither asked nor answered";
  EXPECT_EQ(m.routes[3].route, "(default)");
  EXPECT_EQ(m.routes[3].decided, 1U);
  EXPECT_DOUBLE_EQ(m.macro_recall, 1.0 / 3) << "route c has no support and does not count";
}

TEST(Metrics, ConfusionsComeMostFrequentFirst) {
  const std::vector<Judgement> judgements = {{.label = 1, .best = 0, .decided = 0, .score = 1},
                                             {.label = 0, .best = 1, .decided = 1, .score = 1},
                                             {.label = 0, .best = 1, .decided = 1, .score = 1},
                                             {.label = 2, .best = 2, .decided = kNone, .score = 1}};
  const Metrics m = compute_metrics(judgements, kRoutes);
  std::vector<std::string> lines;
  for (const ConfusionPair& pair : m.confusions)
    lines.push_back(pair.label + ">" + pair.decided + " " + std::to_string(pair.count));
  EXPECT_THAT(lines, ElementsAre("a>b 2", "b>a 1", "c>(default) 1"));
}

TEST(Metrics, CalibrationErrorIsTheMeanDistanceOfScoreAndAccuracy) {
  std::vector<Judgement> judgements;
  for (int i = 0; i < 10; ++i) {  // says 0.95, right in 9 of 10; says 0.45, right in 1 of 10
    judgements.push_back({.label = 0, .best = i == 0 ? 1U : 0U, .decided = 0, .score = 0.95F});
    judgements.push_back({.label = 0, .best = i == 0 ? 0U : 1U, .decided = 0, .score = 0.45F});
  }
  const Metrics m = compute_metrics(judgements, kRoutes);
  EXPECT_NEAR(m.calibration_error, (0.05 + 0.35) / 2, 1e-6);
  ASSERT_EQ(m.reliability.size(), 10U);
  EXPECT_EQ(m.reliability[9].count, 10U);
  EXPECT_NEAR(m.reliability[9].accuracy, 0.9, 1e-9);
  EXPECT_NEAR(m.reliability[4].mean_score, 0.45, 1e-6);
  EXPECT_EQ(m.reliability[0].count, 0U);
}

TEST(Metrics, NothingAtAllIsNotACrash) {
  const Metrics m = compute_metrics({}, {});
  EXPECT_EQ(m.accuracy, 0);
  EXPECT_TRUE(std::isnan(m.out_of_scope_auroc));
  EXPECT_TRUE(std::isnan(m.out_of_scope_recall));
}

TEST(Auroc, CountsTiesHalf) {
  EXPECT_DOUBLE_EQ(auroc(std::vector<float>{3, 4}, std::vector<float>{1, 2}), 1);
  EXPECT_DOUBLE_EQ(auroc(std::vector<float>{1, 2}, std::vector<float>{3, 4}), 0);
  EXPECT_DOUBLE_EQ(auroc(std::vector<float>{1, 1}, std::vector<float>{1, 1, 1}), 0.5);
}

TEST(Percentile, IsTheNearestRank) {
  std::vector<double> values = {5, 1, 4, 2, 3};
  EXPECT_EQ(percentile(values, 0.5), 3);
  EXPECT_EQ(percentile(values, 0.99), 5);
  EXPECT_EQ(percentile(values, 0), 1);
  EXPECT_EQ(percentile({}, 0.5), 0);
}

}  // namespace
}  // namespace waybill::route
