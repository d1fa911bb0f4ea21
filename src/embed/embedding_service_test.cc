#include "embed/embedding_service.h"

#include <future>
#include <latch>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embed/batcher_fakes_test.h"
#include "embed/model_batch_function.h"
#include "embed/small_model_test.h"

namespace waybill::embed {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class EmbeddingServiceTest : public ::testing::Test {
 protected:
  void serve(const EmbeddingServiceOptions& options = {}, double tokens_per_second = 1e9,
             std::size_t queue = 10'000) {
    options_ = options;
    service_.reset();
    batcher_ = std::make_unique<Batcher>(function_,
                                         BatcherOptions{.threads = 2,
                                                        .max_batch_tokens = 32,
                                                        .max_queue_tokens = queue,
                                                        .initial_tokens_per_second = tokens_per_second},
                                         clock_);
    service_ = std::make_unique<EmbeddingService>(model_.model(), *batcher_, texts_, clock_, options);
  }
  void TearDown() override {
    if (batcher_) batcher_->stop();
  }
  Result<EmbeddingAnswer> embed(const std::vector<EmbeddingInput>& inputs,
                                TimePoint deadline = TimePoint::max()) {
    std::promise<Result<EmbeddingAnswer>> promise;
    auto at_once = service_->embed({.inputs = inputs, .deadline = deadline, .executor = &inline_},
                                   [&promise](auto answer) { promise.set_value(std::move(answer)); });
    return at_once ? *std::move(at_once) : promise.get_future().get();
  }
  std::vector<float> expected(const std::vector<std::string>& texts) {
    return embed_texts(model_.model(), texts, options_.text, 1);
  }

  testing::SmallModel model_;
  ModelBatchFunction function_{model_.model(), 2};
  FakeClock clock_;
  InlineExecutor inline_;
  WorkerPool texts_{{.name = "text"}};
  EmbeddingServiceOptions options_;
  std::unique_ptr<Batcher> batcher_;
  std::unique_ptr<EmbeddingService> service_;
};

TEST_F(EmbeddingServiceTest, EmbedsTextsInOrderAndCountsTheirTokens) {
  serve();
  const auto answer = embed({std::string_view("hello"), std::string_view("w8 w9"), std::string_view("")});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->dim, 4U);
  EXPECT_EQ(answer->embeddings, expected({"hello", "w8 w9", ""}));
  EXPECT_EQ(answer->tokens, (std::vector<std::uint32_t>{3, 4, 2}));
  EXPECT_EQ(service_->stats().inputs, 3U);
}

TEST_F(EmbeddingServiceTest, EmbedsManyALittleAtATime) {
  EmbeddingServiceOptions options;
  options.max_tokens_in_flight = 50;
  options.text.long_text = LongText::kWindows;
  serve(options, 1e9, 60);  // all of them together would not fit into the queue
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 400; ++i) {
    std::string& text = texts.emplace_back();
    for (std::size_t w = 0; w < i % 9; ++w) text += "w" + std::to_string(7 + (i * 31 + w * 7) % 490) + " ";
  }
  const std::vector<EmbeddingInput> inputs(texts.begin(), texts.end());
  const auto answer = embed(inputs);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->embeddings, expected(texts));
}

TEST_F(EmbeddingServiceTest, IdsAreTheSameAsTheirText) {
  serve();
  const Tokenizer& tokenizer = model_.model().tokenizer();
  std::vector<TokenId> pieces, whole;
  tokenizer.pieces("w8 w9", 10, pieces);
  tokenizer.encode("w8 w9", 10, whole);
  const auto answer = embed({std::span<const TokenId>(pieces), std::span<const TokenId>(whole)});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->embeddings, expected({"w8 w9", "w8 w9"}));
  EXPECT_EQ(answer->tokens, (std::vector<std::uint32_t>{4, 4}));
}

TEST_F(EmbeddingServiceTest, NamesTheInputThatIsWrong) {
  serve();
  const std::vector<TokenId> good = {7}, none, high = {7, 500}, negative = {-1}, many = {7, 8, 9, 10};
  const auto error_of = [&](const std::vector<TokenId>& ids) {
    const auto answer = embed({std::span<const TokenId>(good), std::span<const TokenId>(ids)});
    EXPECT_FALSE(answer);
    if (answer) return std::string();
    EXPECT_EQ(answer.error().code, ErrorCode::kInvalidInput);
    EXPECT_EQ(answer.error().field, "input[1]");
    return answer.error().message;
  };
  EXPECT_THAT(error_of(none), HasSubstr("no token ids"));
  EXPECT_THAT(error_of(high), HasSubstr("token id 500, and the model's vocabulary ends at 499"));
  EXPECT_THAT(error_of(negative), HasSubstr("token id -1"));
  EXPECT_THAT(error_of(many), HasSubstr("has 4 token ids, and the model takes 3"));
  const auto nothing = embed({});
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().field, "input");
  EXPECT_EQ(batcher_->stats().accepted, 0U);
}

TEST_F(EmbeddingServiceTest, RefusesAtOnceWhatWouldWaitTooLong) {
  EmbeddingServiceOptions options;
  options.max_wait = milliseconds(100);
  serve(options, 10);
  const std::vector<EmbeddingInput> inputs = {std::string_view("hello")};
  EmbeddingService::Completion done = [](Result<EmbeddingAnswer>) { FAIL(); };
  const auto answer = service_->embed({.inputs = inputs, .executor = &inline_}, std::move(done));
  ASSERT_TRUE(answer && !*answer);
  EXPECT_EQ(answer->error().code, ErrorCode::kOverloaded);
  EXPECT_GT(answer->error().retry_after, milliseconds(100));
  EXPECT_TRUE(done != nullptr);
  EXPECT_EQ(service_->stats().refused, 1U);
}

TEST_F(EmbeddingServiceTest, ADeadlineThatPassedIsToldApart) {
  serve();
  EXPECT_EQ(embed({std::string_view("hello")}, clock_.now()).error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(service_->stats().expired, 1U);
}

TEST_F(EmbeddingServiceTest, AnswersWhatWaitsWhenItStops) {
  serve();
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 5000; ++i) texts.push_back("w" + std::to_string(7 + i % 490));
  const std::vector<EmbeddingInput> inputs(texts.begin(), texts.end());
  std::latch hold(1);
  ASSERT_TRUE(texts_.post([&hold] { hold.wait(); }));
  std::promise<Result<EmbeddingAnswer>> promise;
  ASSERT_FALSE(service_->embed({.inputs = inputs, .executor = &inline_},
                               [&](auto answer) { promise.set_value(std::move(answer)); }));
  std::jthread stopper([&] {
    batcher_->stop();
    service_->stop();
  });
  const std::vector<TokenId> ids = {7};
  wait_until([&] {
    return !batcher_->submit({.ids = ids, .executor = &inline_, .done = [](auto&&, const BatchTiming&) {}});
  });
  hold.count_down();
  EXPECT_EQ(promise.get_future().get().error().code, ErrorCode::kShuttingDown);
  stopper.join();
  EXPECT_EQ(embed({std::string_view("late")}).error().code, ErrorCode::kShuttingDown);
}

TEST_F(EmbeddingServiceTest, AnExecutorThatDropsItsWorkStillAnswers) {
  serve();
  QueueExecutor queue;
  const std::vector<EmbeddingInput> inputs(10, std::string_view("hello"));
  std::optional<ErrorCode> seen;
  ASSERT_FALSE(service_->embed({.inputs = inputs, .executor = &queue},
                               [&](auto answer) { seen = answer.error().code; }));
  service_->stop();
  queue.drop();
  EXPECT_EQ(seen, ErrorCode::kShuttingDown);
}

}  // namespace
}  // namespace waybill::embed
