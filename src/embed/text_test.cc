#include "embed/text.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embed/tokenizer.h"
#include "embed/tokenizer_files.h"
#include "embed/vocabulary.h"

namespace waybill::embed {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// Digits are words of their own: the ids of "0" .. "9" are 4 .. 13.
class CuttingTest : public ::testing::Test {
 protected:
  CuttingTest() { config_.max_tokens = 6; }  // room for four pieces

  // The pieces of each sequence, in words; checks the frame.
  std::vector<std::string> cut(std::string_view text, TextOptions options) {
    std::vector<TokenId> ids = {77};  // what was there before stays
    std::vector<std::uint32_t> offsets = {0, 1};
    const std::size_t count = tokenize(tokenizer_, config_, text, options, ids, offsets);
    EXPECT_THAT(offsets, SizeIs(count + 2));
    EXPECT_EQ(ids.front(), 77);
    EXPECT_EQ(ids.size(), offsets.back());
    std::vector<std::string> out;
    for (std::size_t s = 1; s + 1 < offsets.size(); ++s) {
      EXPECT_LE(offsets[s + 1] - offsets[s], config_.max_tokens);
      EXPECT_EQ(ids[offsets[s]], tokenizer_.cls_id());
      EXPECT_EQ(ids[offsets[s + 1] - 1], tokenizer_.sep_id());
      out.emplace_back();
      for (std::size_t i = offsets[s] + 1; i + 1 < offsets[s + 1]; ++i)
        out.back() += tokenizer_.piece_text(ids[i]);
    }
    return out;
  }
  static std::string digits(std::size_t count) {
    std::string out;
    for (std::size_t i = 0; i < count; ++i) out.append(1, static_cast<char>('0' + i % 10)).append(" ");
    return out;
  }

  Tokenizer tokenizer_{
      read_vocabulary("[PAD]\n[UNK]\n[CLS]\n[SEP]\n0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n", "").value()};
  ModelConfig config_;
};

constexpr TextOptions kHead{.long_text = LongText::kHead};
constexpr TextOptions kTail{.long_text = LongText::kTail};
constexpr TextOptions kEnds{.long_text = LongText::kEnds};

TEST_F(CuttingTest, AShortTextIsTheSameInEveryWay) {
  for (const LongText way : {LongText::kHead, LongText::kTail, LongText::kEnds, LongText::kWindows}) {
    EXPECT_THAT(cut("1 2 3 4", {.long_text = way}), ElementsAre("1234"));
    EXPECT_THAT(cut("", {.long_text = way}), ElementsAre(""));
    EXPECT_THAT(cut("  \n ", {.long_text = way}), ElementsAre(""));
  }
}

TEST_F(CuttingTest, HeadIsTheFirstPiecesAndTailTheLast) {
  EXPECT_THAT(cut("1 2 3 4 5 6", kHead), ElementsAre("1234"));
  EXPECT_THAT(cut("1 2 3 4 5 6", kTail), ElementsAre("3456"));
}

TEST_F(CuttingTest, TheTailOfALongTextIsTheTailOfAllItsPieces) {
  for (std::size_t count = 1; count < 200; ++count) {
    const std::string text = digits(count) + std::string(count % 7, ' ');
    std::string expected;
    for (std::size_t i = count < 4 ? 0 : count - 4; i < count; ++i)
      expected += static_cast<char>('0' + i % 10);
    ASSERT_THAT(cut(text, kTail), ElementsAre(expected)) << count;
  }
  EXPECT_THAT(cut("1 2 3 4 5" + std::string(1'000'000, ' '), kTail), ElementsAre("2345"));
  EXPECT_THAT(cut(std::string(1'000'000, ' ') + "1 2 3", kTail), ElementsAre("123"));
  EXPECT_THAT(cut("1 2 3 4 " + std::string(5000, 'x') + " 5 6", kTail), ElementsAre("4[UNK]56"));
}

TEST_F(CuttingTest, EndsAreTheFirstPiecesAndTheLast) {
  for (std::size_t count = 1; count < 200; ++count) {
    const std::string text = digits(count);
    std::string expected;
    for (std::size_t i = 0; i < count; ++i) {
      if (count <= 4 || i < 2 || i + 2 >= count) expected += static_cast<char>('0' + i % 10);
    }
    ASSERT_THAT(cut(text, kEnds), ElementsAre(expected)) << count;
  }
  EXPECT_THAT(cut("1 2 3 4 5" + std::string(1'000'000, ' '), kEnds), ElementsAre("1245"));
}

TEST_F(CuttingTest, WindowsDivideATextEvenly) {
  const TextOptions windows{.long_text = LongText::kWindows, .max_windows = 4};
  EXPECT_THAT(cut("0 1 2 3 4", windows), ElementsAre("01", "234"));
  EXPECT_THAT(cut("0 1 2 3 4 5 6 7 8", windows), ElementsAre("012", "345", "678"));
  EXPECT_THAT(cut(digits(16), windows), ElementsAre("0123", "4567", "8901", "2345"));
}

TEST_F(CuttingTest, WindowsAreSpreadOverATextThatTheyCannotCover) {
  const TextOptions windows{.long_text = LongText::kWindows, .max_windows = 3};
  EXPECT_THAT(cut(digits(100), windows), ElementsAre("0123", "0123", "6789"));
  EXPECT_THAT(cut(digits(95), windows), ElementsAre("0123", "8901", "1234"));
  EXPECT_THAT(cut(digits(50), {.long_text = LongText::kWindows, .max_windows = 1}), ElementsAre("0123"));
  // In the middle nothing but spaces: no empty window.
  EXPECT_THAT(cut(digits(13) + std::string(1000, ' '), windows), ElementsAre("0123", "9012"));
}

TEST_F(CuttingTest, TenMegabytesCostWhatIsLookedAt) {
  std::string text;
  while (text.size() < 10'000'000) text += "1 2 3 4 5 6 7 8 9 0 ";
  for (const LongText way : {LongText::kHead, LongText::kTail, LongText::kEnds, LongText::kWindows}) {
    std::vector<TokenId> ids;
    std::vector<std::uint32_t> offsets{0};
    tokenize(tokenizer_, config_, text, {.long_text = way}, ids, offsets);
    EXPECT_LT(ids.capacity(), 1000U);
  }
}

TEST_F(CuttingTest, BytesThatAreNoTextDoNoHarm) {
  std::string text(5000, '\xFF');
  text += std::string(5000, '\0') + std::string(5000, '\x80') + "1 2";
  for (const LongText way : {LongText::kHead, LongText::kTail, LongText::kEnds, LongText::kWindows})
    (void)cut(text, {.long_text = way});
}

TEST(AverageWindows, WeighsByLengthAndNormalises) {
  const std::vector<float> windows = {1, 0, 0, 1};
  std::vector<float> out(2);
  average_windows(windows, std::vector<std::uint32_t>{3, 4}, out);
  EXPECT_THAT(out, ElementsAre(::testing::FloatEq(0.6F), ::testing::FloatEq(0.8F)));
}

TEST(AverageWindows, OneWindowIsItself) {
  const std::vector<float> windows = {0.25F, 7};
  std::vector<float> out(2);
  average_windows(windows, std::vector<std::uint32_t>{0}, out);
  EXPECT_EQ(out, windows);
}

TEST(AverageWindows, WindowsThatCancelOutAreZero) {
  const std::vector<float> windows = {1, 0, -1, 0};
  std::vector<float> out(2, 5);
  average_windows(windows, std::vector<std::uint32_t>{2, 2}, out);
  EXPECT_THAT(out, ElementsAre(0, 0));
}

}  // namespace
}  // namespace waybill::embed
