#include <cstddef>
#include <future>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/executor.h"
#include "embed/batcher.h"
#include "embed/model.h"
#include "embed/model_batch_function.h"
#include "embed/small_model_test.h"
#include "embed/text.h"

namespace waybill::embed {
namespace {

using ::testing::ElementsAreArray;

class EmbedTexts : public ::testing::Test {
 protected:
  const Model& model() { return small_.model(); }

  std::vector<float> alone(const std::string& text) {
    std::vector<TokenId> ids;
    model().tokenizer().encode(text, model().config().max_tokens, ids);
    const std::vector<std::uint32_t> offsets = {0, static_cast<std::uint32_t>(ids.size())};
    std::vector<float> out(model().dim());
    Workspace workspace;
    model().forward({ids, offsets}, out, workspace);
    return out;
  }
  static std::vector<std::string> texts(std::size_t count) {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < count; ++i) {
      std::string text;
      for (std::size_t word = 0; word < i % 8; ++word)
        text += "w" + std::to_string(7 + (i * 31 + word) % 490) + " ";
      out.push_back(text);
    }
    return out;
  }

  testing::SmallModel small_;
};

TEST_F(EmbedTexts, GivesEachTextItsOwnEmbeddingForAnyNumberOfThreads) {
  const std::vector<std::string> all = texts(9000);  // more than a round
  const std::vector<float> one = embed_texts(model(), all, {}, 1);
  ASSERT_EQ(one.size(), all.size() * model().dim());
  for (const unsigned threads : {0U, 3U}) EXPECT_EQ(embed_texts(model(), all, {}, threads), one);
  for (std::size_t i = 0; i < all.size(); i += 97) {
    const std::vector<float> row(&one[i * 4], &one[i * 4] + 4);
    ASSERT_EQ(row, alone(all[i])) << i;
  }
}

TEST_F(EmbedTexts, ALongTextIsTheAverageOfItsWindows) {
  const std::vector<std::string> one = {"w10", "w7 w8 w9 w10 w11", "w12"};  // three pieces fit
  const std::vector<float> out = embed_texts(model(), one, {.long_text = LongText::kWindows});
  std::vector<float> windows = alone("w7 w8");
  const std::vector<float> second = alone("w9 w10 w11");
  windows.insert(windows.end(), second.begin(), second.end());
  std::vector<float> expected(4);
  average_windows(windows, std::vector<std::uint32_t>{2, 3}, expected);
  EXPECT_THAT(std::vector<float>(&out[4], &out[4] + 4), ElementsAreArray(expected));
  EXPECT_THAT(std::vector<float>(&out[8], &out[8] + 4), ElementsAreArray(alone("w12")));
}

TEST_F(EmbedTexts, TellsHowFarItIs) {
  std::size_t last = 0, last_total = 0;
  (void)embed_texts(model(), texts(9000), {}, 2, [&](std::string_view, std::size_t done, std::size_t total) {
    EXPECT_GE(done, last);
    last = done, last_total = total;
  });
  EXPECT_EQ(last, 9000U);
  EXPECT_EQ(last_total, 9000U);
  EXPECT_TRUE(embed_texts(model(), {}).empty());
}

TEST_F(EmbedTexts, TheBatcherGivesTheSameEmbedding) {
  ModelBatchFunction function(model(), 2);
  const SteadyClock clock;
  InlineExecutor executor;
  Batcher batcher(function, {.threads = 2}, clock);
  std::vector<TokenId> ids;
  model().tokenizer().encode("hello world", 5, ids);
  std::promise<std::vector<float>> answer;
  Batcher::Item item{
      .ids = ids, .executor = &executor, .done = [&](auto&& result, const BatchTiming&) {
        answer.set_value(result ? std::vector<float>(result->begin(), result->end()) : std::vector<float>());
      }};
  ASSERT_TRUE(batcher.submit(std::move(item)));
  EXPECT_EQ(answer.get_future().get(), alone("hello world"));
}

}  // namespace
}  // namespace waybill::embed
