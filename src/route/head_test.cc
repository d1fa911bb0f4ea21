#include "route/head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "route/kernel_features.h"
#include "route/ridge.h"
#include "route/softmax_regression.h"

namespace waybill::route {
namespace {

using Eigen::Index;
using Eigen::MatrixXf;
using testing::HasSubstr;

constexpr std::size_t kDim = 24;

// Unit vectors scattered around one centre per route; the seeds make every run the same.
class Texts {
 public:
  explicit Texts(std::size_t routes, float spread = 0.8F, std::uint64_t seed = 1) : random_(seed), spread_(spread) {
    for (std::size_t r = 0; r < routes; ++r) centres_.push_back(direction());
  }

  Texts& add(std::size_t route, std::size_t count = 1) {
    for (; count > 0; --count) push(near(centres_[route]), route);
    return *this;
  }
  Texts& add_each(std::size_t count) {
    for (std::size_t r = 0; r < centres_.size(); ++r) add(r, count);
    return *this;
  }
  void push(const Eigen::VectorXf& embedding, std::size_t route) {
    embeddings.insert(embeddings.end(), embedding.begin(), embedding.end());
    labels.push_back(static_cast<std::uint32_t>(route));
  }

  [[nodiscard]] Eigen::VectorXf like(std::size_t route) { return near(centres_[route]); }
  [[nodiscard]] Eigen::VectorXf direction() {
    std::normal_distribution<float> normal;
    return Eigen::VectorXf::NullaryExpr(kDim, [&] { return normal(random_); }).normalized();
  }
  [[nodiscard]] LabelledEmbeddings data() const {
    return {.embeddings = embeddings, .labels = labels, .dim = kDim, .routes = centres_.size(), .out_of_scope = out_of_scope};
  }
  [[nodiscard]] MatrixXf matrix() const {
    return Eigen::Map<const MatrixXf>(embeddings.data(), kDim, static_cast<Index>(labels.size()));
  }

  std::vector<float> embeddings, out_of_scope;
  std::vector<std::uint32_t> labels;

 private:
  Eigen::VectorXf near(const Eigen::VectorXf& centre) { return (centre + spread_ * direction()).normalized(); }

  std::mt19937_64 random_;
  float spread_;
  std::vector<Eigen::VectorXf> centres_;
};

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

TEST(RidgeTest, LeaveOneOutIsWhatAFitWithoutTheExamplePredicts) {
  const Texts texts = std::move(Texts(3).add(0, 9).add(1, 4).add(2, 1));
  const auto n = static_cast<Index>(texts.labels.size());
  const MatrixXf x = texts.matrix(), features = KernelFeatures(x, texts.labels).of(x, 1);
  const MatrixXf targets = MatrixXf::Random(3, n);
  const Eigen::VectorXf weights = Eigen::VectorXf::LinSpaced(n, 0.2F, 3.0F);
  const RidgeFit fit = fit_ridge(features, targets, weights, 0.2, 1);
  for (Index left = 0; left < n; ++left) {
    std::vector<Index> rest;
    for (Index i = 0; i < n; ++i) {
      if (i != left) rest.push_back(i);
    }
    // Brute force, and in the dual, which shares nothing with the code under test.
    const MatrixXf others = x(Eigen::all, rest);
    Eigen::MatrixXd k = kernel_between(others, others).cast<double>();
    k.diagonal() += (0.2 / weights(rest).cast<double>().array()).matrix();
    const Eigen::MatrixXd alpha = k.llt().solve(targets(Eigen::all, rest).transpose().cast<double>());
    const Eigen::VectorXd predicted = alpha.transpose() * kernel_between(others, x.col(left)).cast<double>();
    EXPECT_LT((predicted - fit.leave_one_out.col(left).cast<double>()).cwiseAbs().maxCoeff(), 1e-3) << left;
  }
}

TEST(SoftmaxRegressionTest, LeaveOneOutIsCloseToAFitWithoutTheExample) {
  const Texts texts = std::move(Texts(4, 1.1F).add_each(8));
  const MatrixXf x = texts.matrix(), features = KernelFeatures(x, texts.labels).of(x, 1);
  const SoftmaxOptions options{.iterations = 300, .threads = 1, .keep_going = {}};
  const Eigen::VectorXf offsets = Eigen::VectorXf::Zero(4);
  const MatrixXf start = MatrixXf::Zero(features.rows(), 4);
  const SoftmaxFit all = fit_softmax(features, texts.labels, offsets, start, options);
  const MatrixXf estimated = softmax_leave_one_out(features, all, texts.labels, offsets, options);
  double shift = 0, error = 0;
  for (Index left = 0; left < x.cols(); ++left) {
    std::vector<Index> rest;
    std::vector<std::uint32_t> labels;
    for (Index i = 0; i < x.cols(); ++i) {
      if (i == left) continue;
      rest.push_back(i);
      labels.push_back(texts.labels[static_cast<std::size_t>(i)]);
    }
    const SoftmaxFit without = fit_softmax(features(Eigen::all, rest), labels, offsets, start, options);
    const Eigen::VectorXf truth = without.weights.transpose() * features.col(left);
    shift += static_cast<double>((truth - all.logits.col(left)).squaredNorm());
    error += static_cast<double>((truth - estimated.col(left)).squaredNorm());
  }
  EXPECT_LT(error, 0.05 * shift);  // an approximation, but most of what leaving out changes is in it
}

TEST(SoftmaxRegressionTest, TheGradientVanishesAtTheSolution) {
  const Texts texts = std::move(Texts(3, 1.0F).add(0, 12).add(1, 5).add(2, 7));
  const MatrixXf x = texts.matrix(), features = KernelFeatures(x, texts.labels).of(x, 1);
  Eigen::VectorXf offsets(3);
  offsets << 0.5F, -0.6F, 0.0F;
  const SoftmaxFit fit = fit_softmax(features, texts.labels, offsets, MatrixXf::Zero(features.rows(), 3),
                                     {.iterations = 300, .threads = 1, .keep_going = {}});
  MatrixXf p = (fit.weights.transpose() * features).colwise() + offsets;
  for (Index i = 0; i < p.cols(); ++i) {
    p.col(i) = p.col(i).array().exp() / p.col(i).array().exp().sum();
    p(static_cast<Index>(texts.labels[static_cast<std::size_t>(i)]), i) -= 1;
  }
  const MatrixXf gradient = features * p.transpose() + 0.03F * fit.weights;
  EXPECT_LT(gradient.norm(), 0.02F);
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
  texts.add(0, 8).add(1, 8).add(2, 8).add(3, 8);  // route 4 has no utterances: its texts play the out-of-scope
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
    const Eigen::VectorXf text = i % 2 == 0 ? texts.direction() : texts.like(static_cast<std::size_t>(i) % 12);
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
  texts.add_each(KernelFeatures::kExact / 10 + 10);
  const Head head = fitted(texts);
  EXPECT_LT(head.cost(), (KernelFeatures::kLandmarks + kDim) * (kDim + 16));
  EXPECT_GT(accuracy(head, texts, 3), 0.9);
  EXPECT_NEAR(head.statistics().accuracy, accuracy(head, texts, 3), 0.08);
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
  EXPECT_THAT(Head::deserialize("nonsense, but long enough for a header").error().message, HasSubstr("not a fitted head"));
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
