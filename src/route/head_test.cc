#include "route/head.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "route/scattered_texts_test.h"

namespace waybill::route {
namespace {

using Eigen::Index;
using testing::HasSubstr;

HeadOptions quiet() { return {.thresholds = {}, .threads = 2, .progress = {}, .stop = {}}; }

Head fitted(const Texts& texts, const HeadOptions& options = quiet()) {
  Result<Head> head = Head::fit(texts.data(), options);
  if (!head) ADD_FAILURE() << head.error().message;
  return std::move(head).value();
}

HeadDecision decide(const Head& head, const Eigen::VectorXf& embedding) {
  Head::Scratch scratch;
  std::vector<float> probabilities(head.routes());
  return head.score({embedding.data(), kDim}, probabilities, scratch);
}

double accuracy(const Head& head, Texts& texts, std::size_t route, int count = 200) {
  int right = 0;
  for (int i = 0; i < count; ++i) right += decide(head, texts.like(route)).best == route ? 1 : 0;
  return static_cast<double>(right) / count;
}

TEST(HeadTest, TellsRoutesApartAndKnowsHowWellItDoes) {
  Texts texts(20, 1.0F);
  texts.add_each(12);
  const Head head = fitted(texts);
  double right = 0, claimed = 0;
  for (std::size_t r = 0; r < 20; ++r) {
    for (int i = 0; i < 100; ++i) {
      const HeadDecision d = decide(head, texts.like(r));
      right += d.best == r ? 1 : 0;
      claimed += static_cast<double>(d.probability);
    }
  }
  EXPECT_GT(right / 2000, 0.85);
  EXPECT_NEAR(claimed / 2000, right / 2000, 0.05);
  EXPECT_NEAR(head.statistics().accuracy, right / 2000, 0.08);
  EXPECT_LT(head.statistics().calibration_error, 0.08);
}

TEST(HeadTest, RejectsAboutTheShareOfUtterancesThatItWasAskedTo) {
  Texts texts(10, 0.9F);
  texts.add_each(15);
  HeadOptions options = quiet();
  options.reject_quantile = 0.2;
  const Head head = fitted(texts, options);
  int kept = 0, far = 0;
  for (std::size_t r = 0; r < 10; ++r) {
    for (int i = 0; i < 100; ++i) kept += decide(head, texts.like(r)).accepted ? 1 : 0;
  }
  for (int i = 0; i < 1000; ++i) far += decide(head, texts.direction()).accepted ? 1 : 0;
  EXPECT_NEAR(kept / 1000.0, 0.8, 0.08);
  EXPECT_LT(far / 1000.0, 0.1);  // random directions belong to no route
}

TEST(HeadTest, ASingleRouteAcceptsWhatIsNearAndRejectsWhatIsFar) {
  Texts texts(1, 0.5F);
  texts.add(0, 10);
  const Head head = fitted(texts);
  EXPECT_TRUE(decide(head, texts.like(0)).accepted);
  EXPECT_GT(decide(head, texts.like(0)).probability, decide(head, texts.direction()).probability);
  EXPECT_FALSE(decide(head, texts.direction()).accepted);
}

TEST(HeadTest, TwoRoutesOfOneUtteranceEachAreEnough) {
  Texts texts(2, 0.4F);
  texts.add_each(1);
  const Head head = fitted(texts);
  EXPECT_EQ(decide(head, texts.like(0)).best, 0U);
  EXPECT_EQ(decide(head, texts.like(1)).best, 1U);
  EXPECT_LT(decide(head, texts.like(0)).probability, 1.0F);
}

TEST(HeadTest, ManyUtterancesOfOneRouteDoNotDrownTheFewOfAnother) {
  Texts texts(3, 1.0F);
  texts.add(0, 400).add(1, 6).add(2, 6);
  const Head head = fitted(texts);
  EXPECT_GT(accuracy(head, texts, 0), 0.85);
  EXPECT_GT(accuracy(head, texts, 1), 0.85);
  EXPECT_GT(accuracy(head, texts, 2), 0.85);
}

TEST(HeadTest, TheSameTextInTwoRoutesIsATossUpAndHurtsNothingElse) {
  Texts texts(4, 0.6F);
  texts.add_each(6);
  const Eigen::VectorXf both = texts.direction();
  for (int i = 0; i < 3; ++i) {
    texts.push(both, 0);
    texts.push(both, 1);
  }
  const Head head = fitted(texts);
  const HeadDecision d = decide(head, both);
  EXPECT_LE(d.best, 1U);
  EXPECT_LE(d.second, 1U);
  EXPECT_LT(d.margin, 1.0F);
  EXPECT_GT(accuracy(head, texts, 2), 0.95);
}

TEST(HeadTest, ARouteWithoutUtterancesIsNeverChosen) {
  Texts texts(4);
  texts.add(0, 5).add(1, 5).add(3, 5);
  const Head head = fitted(texts);
  for (int i = 0; i < 100; ++i) EXPECT_NE(decide(head, texts.like(2)).best, 2U);
  EXPECT_GT(accuracy(head, texts, 3), 0.9);
}

TEST(HeadTest, OutOfScopeExamplesLowerTheProbabilityAroundThem) {
  Texts texts(5, 0.7F);
  texts.add(0, 8).add(1, 8).add(2, 8).add(3,
                                          8);  // route 4 has no utterances: its texts play the out-of-scope
  const Head without = fitted(texts);
  for (int i = 0; i < 8; ++i) {
    const Eigen::VectorXf example = texts.like(4);
    texts.out_of_scope.insert(texts.out_of_scope.end(), example.begin(), example.end());
  }
  const Head with = fitted(texts);
  double before = 0, after = 0;
  for (int i = 0; i < 100; ++i) {
    const Eigen::VectorXf text = texts.like(4);
    before += static_cast<double>(decide(without, text).probability);
    after += static_cast<double>(decide(with, text).probability);
  }
  EXPECT_LT(after, 0.7 * before);
  EXPECT_GT(accuracy(with, texts, 0), 0.9);
}

TEST(HeadTest, ProbabilitiesAreSortedAsTheDecisionSaysAndSumToAtMostOne) {
  Texts texts(12, 1.2F);
  texts.add_each(4);
  const Head head = fitted(texts);
  Head::Scratch scratch;
  std::vector<float> p(12);
  for (int i = 0; i < 300; ++i) {
    const Eigen::VectorXf text =
        i % 2 == 0 ? texts.direction() : texts.like(static_cast<std::size_t>(i) % 12);
    const HeadDecision d = head.score({text.data(), kDim}, p, scratch);
    EXPECT_EQ(p[d.best], *std::max_element(p.begin(), p.end()));
    EXPECT_EQ(p[d.best], d.probability);
    EXPECT_EQ(p[d.second], d.second_probability);
    EXPECT_GE(d.margin, 0.0F);
    EXPECT_LE(std::accumulate(p.begin(), p.end(), 0.0F), 1.0001F);
  }
}

TEST(HeadTest, MoreUtterancesThanLandmarksAreCompressed) {
  Texts texts(10, 1.0F);
  texts.add_each(HeadOptions{}.exact / 10 + 10);
  const Head head = fitted(texts);
  EXPECT_LT(head.cost(), (HeadOptions{}.landmarks + kDim) * (kByteColumns + kHalfColumns));
  EXPECT_GT(accuracy(head, texts, 3), 0.9);
  EXPECT_NEAR(head.statistics().accuracy, accuracy(head, texts, 3), 0.08);
}

TEST(HeadTest, WithoutLandmarksItIsLinearAndReadsBackWhatItWrote) {
  Texts texts(10, 1.0F);
  texts.add_each(20);
  HeadOptions options = quiet();
  options.exact = options.landmarks = 0;
  const Head head = fitted(texts, options);
  EXPECT_EQ(head.cost(), kDim * kHalfColumns);
  EXPECT_GT(accuracy(head, texts, 3), 0.85);
  const Result<Head> again = Head::deserialize(head.serialize());
  ASSERT_TRUE(again) << again.error().message;
  const Eigen::VectorXf text = texts.like(2);
  EXPECT_EQ(decide(head, text).probability, decide(*again, text).probability);
}

TEST(HeadTest, TheSameForAnyNumberOfThreads) {
  Texts texts(15, 1.0F);
  texts.add_each(50);
  HeadOptions one = quiet(), four = quiet();
  one.threads = 1, four.threads = 4;
  EXPECT_EQ(fitted(texts, one).serialize(), fitted(texts, four).serialize());
}

TEST(HeadTest, LeaveOneOutSaysTheSameAsTheDecisionForms) {
  Texts texts(5);
  texts.add_each(10);
  const Head head = fitted(texts);
  ASSERT_EQ(head.leave_one_out().size(), 50U);
  double right = 0;
  for (std::size_t i = 0; i < 50; ++i) right += head.leave_one_out()[i].best == texts.labels[i] ? 1 : 0;
  EXPECT_DOUBLE_EQ(head.statistics().accuracy, right / 50);
}

TEST(HeadTest, AGivenThresholdStandsAndOthersAreFoundFromTheUtterances) {
  Texts texts(3);
  texts.add_each(10);
  HeadOptions options = quiet();
  options.thresholds = {std::nullopt, 0.99999F, std::nullopt};
  const Head head = fitted(texts, options);
  EXPECT_EQ(head.thresholds()[1], 0.99999F);
  EXPECT_LT(head.thresholds()[0], 0.99F);
  EXPECT_FALSE(decide(head, texts.like(1)).accepted);
}

TEST(HeadTest, ReadsBackWhatItWrote) {
  Texts texts(6);
  texts.add_each(7);
  for (const config::Scoring scoring : {config::Scoring::kKernel, config::Scoring::kAurelio}) {
    HeadOptions options = quiet();
    options.scoring = scoring;
    const Head head = fitted(texts, options);
    Result<Head> again = Head::deserialize(head.serialize());
    ASSERT_TRUE(again) << again.error().message;
    for (int i = 0; i < 50; ++i) {
      const Eigen::VectorXf text = texts.like(2);
      const HeadDecision a = decide(head, text), b = decide(*again, text);
      EXPECT_EQ(a.best, b.best);
      EXPECT_EQ(a.probability, b.probability);
      EXPECT_EQ(a.accepted, b.accepted);
    }
    EXPECT_EQ(again->statistics().accuracy, head.statistics().accuracy);
    EXPECT_EQ(again->serialize(), head.serialize());
  }
}

TEST(HeadTest, RefusesADamagedFileWithASentence) {
  Texts texts(3);
  texts.add_each(3);
  const std::string good = fitted(texts).serialize();
  for (std::size_t at = 0; at < good.size(); at += 7) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    EXPECT_FALSE(Head::deserialize(bad)) << at;
    EXPECT_FALSE(Head::deserialize(std::string_view(good).substr(0, at))) << at;
  }
  EXPECT_THAT(Head::deserialize("nonsense, but long enough for a header").error().message,
              HasSubstr("not a fitted head"));
  std::string newer = good;
  newer[6] = 9;
  EXPECT_EQ(Head::deserialize(newer).error().code, ErrorCode::kUnsupported);
}

TEST(HeadTest, RefusesWhatCannotBeFitted) {
  Texts texts(2);
  EXPECT_EQ(Head::fit(texts.data(), quiet()).error().code, ErrorCode::kInvalidInput);
  texts.add_each(2);
  texts.labels[0] = 2;
  EXPECT_THAT(Head::fit(texts.data(), quiet()).error().message, HasSubstr("label 2"));
  texts.labels[0] = 0;
  texts.embeddings[5] = NAN;
  EXPECT_THAT(Head::fit(texts.data(), quiet()).error().message, HasSubstr("not finite"));
  texts.embeddings.pop_back();
  EXPECT_EQ(Head::fit(texts.data(), quiet()).error().code, ErrorCode::kInvalidInput);
}

TEST(HeadTest, StopsWhenAskedAndTellsHowFarItIs) {
  Texts texts(3);
  texts.add_each(5);
  std::stop_source source;
  HeadOptions options = quiet();
  options.stop = source.get_token();
  std::vector<std::size_t> seen;
  options.progress = [&](std::string_view, std::size_t done, std::size_t) { seen.push_back(done); };
  ASSERT_TRUE(Head::fit(texts.data(), options));
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(seen.back(), 100U);
  source.request_stop();
  EXPECT_EQ(Head::fit(texts.data(), options).error().code, ErrorCode::kCancelled);
}

TEST(AurelioScoringTest, AggregatesTheNearestUtterancesOfEachRoute) {
  Texts texts(3);
  const auto at = [](float cosine) {
    Eigen::VectorXf v = Eigen::VectorXf::Zero(kDim);
    v[0] = cosine, v[1] = std::sqrt(1 - cosine * cosine);
    return v;
  };
  for (const float cosine : {0.9F, 0.3F}) texts.push(at(cosine), 0);
  for (const float cosine : {0.8F, 0.7F, 0.6F}) texts.push(at(cosine), 1);
  texts.push(at(0.1F), 2);
  const Eigen::VectorXf query = at(1.0F);
  Head::Scratch scratch;
  std::vector<float> scores(3);
  const auto ask = [&](config::Aggregation aggregation) {
    HeadOptions options = quiet();
    options.scoring = config::Scoring::kAurelio;
    options.aggregation = aggregation;
    return fitted(texts, options).score({query.data(), kDim}, scores, scratch);
  };
  EXPECT_EQ(ask(config::Aggregation::kMean).best, 1U);
  EXPECT_NEAR(scores[0], 0.6F, 1e-5F);
  EXPECT_NEAR(scores[1], 0.7F, 1e-5F);
  EXPECT_EQ(scores[2], -1.0F);  // not among the five nearest
  EXPECT_EQ(ask(config::Aggregation::kSum).best, 1U);
  EXPECT_NEAR(scores[1], 2.1F, 1e-5F);
  EXPECT_EQ(ask(config::Aggregation::kMax).best, 0U);
  EXPECT_NEAR(scores[0], 0.9F, 1e-5F);
}

}  // namespace
}  // namespace waybill::route
