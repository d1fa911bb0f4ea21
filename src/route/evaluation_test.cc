#include "route/evaluation.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "route/test_model.h"

namespace waybill::route {
namespace {

using testing::HasSubstr;

Dataset small_dataset() {
  return {.name = "train.tsv",
          .examples = {{"will it rain tomorrow", "weather", 1},
                       {"what is the weather like in Paris", "weather", 2},
                       {"is it going to snow", "weather", 3},
                       {"what is my account balance", "banking", 4},
                       {"transfer money to savings", "banking", 5},
                       {"my credit card was stolen", "banking", 6},
                       {"tell me a joke", "oos", 7}}};
}

class EvaluationTest : public testing::Test {
 protected:
  EvaluationTest() {
    folder_ = std::filesystem::temp_directory_path() / ("waybill-evaluation-" + std::to_string(::getpid()));
    config::Config base;
    base.cache_folder = folder_;
    config_ = config_of_examples(small_dataset(), {}, base);
    Result<std::unique_ptr<Router>> router =
        Router::load(config_, testing_model(), {.wait_for_static = true});
    EXPECT_TRUE(router) << (router ? "" : router.error().message);
    if (router) router_ = std::move(*router);
  }
  ~EvaluationTest() override {
    router_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::filesystem::path folder_;
  config::Config config_;
  std::unique_ptr<Router> router_;
};

TEST_F(EvaluationTest, TheRoutesOfAConfigurationMadeOfExamplesAreTheirLabels) {
  ASSERT_EQ(config_.routes.size(), 2U);
  EXPECT_EQ(config_.routes[0].name, "weather");
  EXPECT_EQ(config_.routes[1].utterances.size(), 3U);
  EXPECT_EQ(config_.routes[1].utterances[0].position.line, 4);
  ASSERT_EQ(config_.head.out_of_scope.size(), 1U);
  const std::vector<std::size_t> chosen = {0, 3};
  EXPECT_EQ(config_of_examples(small_dataset(), chosen).routes[1].utterances.size(), 1U);
}

TEST_F(EvaluationTest, JudgesEveryTextOfTheTestFile) {
  const Dataset test{.name = "test.tsv",
                     .examples = {{"do I need an umbrella", "weather", 1},
                                  {"block my card", "banking", 2},
                                  {"what is my account balance", "banking", 3},
                                  {"who painted the Mona Lisa", "out_of_scope", 4}}};
  const Result<Evaluation> evaluation = evaluate(*router_, testing_model(), test, {.latency_samples = 3});
  ASSERT_TRUE(evaluation) << evaluation.error().message;
  EXPECT_EQ(evaluation->routes, 2U);
  EXPECT_EQ(evaluation->utterances, 6U);
  EXPECT_EQ(evaluation->metrics.in_scope, 3U);
  EXPECT_EQ(evaluation->metrics.out_of_scope, 1U);
  EXPECT_EQ(evaluation->metrics.accuracy, 1);
  EXPECT_EQ(evaluation->metrics.out_of_scope_auroc, 1);
  ASSERT_TRUE(evaluation->static_tier);
  EXPECT_EQ(evaluation->static_tier->cascade_accuracy, 1);
  EXPECT_EQ(evaluation->static_tier->decided, 0) << "six utterances cannot open the gate";
  EXPECT_TRUE(std::isnan(evaluation->static_tier->decided_agreement));
  ASSERT_EQ(evaluation->latency.size(), 3U);
  EXPECT_EQ(evaluation->latency[0].tier, Tier::kCache);
  EXPECT_EQ(evaluation->latency[2].tier, Tier::kEncoder);
  EXPECT_LE(evaluation->latency[2].p50_us, evaluation->latency[2].p99_us);
  EXPECT_FALSE(evaluation->precision);
}

TEST_F(EvaluationTest, ComparesWithAnotherPrecision) {
  const Dataset test{.name = "test.tsv",
                     .examples = {{"do I need an umbrella", "weather", 1}, {"block my card", "banking", 2}}};
  const embed::Model reference = load_testing_model(embed::Precision::kF32);
  Result<std::unique_ptr<Router>> other = Router::load(config_, reference);
  ASSERT_TRUE(other);
  EvaluationOptions options;
  options.reference = &reference;
  options.reference_router = other->get();
  const Result<Evaluation> evaluation = evaluate(*router_, testing_model(), test, options);
  ASSERT_TRUE(evaluation && evaluation->precision);
  EXPECT_EQ(evaluation->precision->same_route, 1);
  EXPECT_GT(evaluation->precision->min_cosine, 0.995);
  EXPECT_LE(evaluation->precision->min_cosine, evaluation->precision->mean_cosine);
}

TEST_F(EvaluationTest, ALabelThatIsNoRouteIsAnErrorWithItsLineAndASuggestion) {
  const Dataset test{.name = "test.tsv", .examples = {{"do I need an umbrella", "wether", 7}}};
  const Result<Evaluation> evaluation = evaluate(*router_, testing_model(), test);
  ASSERT_FALSE(evaluation);
  EXPECT_THAT(evaluation.error().message, HasSubstr("test.tsv:7"));
  EXPECT_THAT(evaluation.error().message, HasSubstr("weather"));
}

}  // namespace
}  // namespace waybill::route
