#include "embed/tokenizer.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <boost/json/parse.hpp>
#include <boost/json/value_to.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "embed/test_model.h"

namespace waybill::embed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

constexpr std::string_view kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\nun\n##aff\n##able\n!\n[\n]\ncls\n##"
    "s\nA\na\nE\xCC\x81\n\xC3\x89\n"
    "e\n\xE4\xB8\xAD\n\xE6\x96\x87\n\xE4\xB8\xAD\xE6\x96\x87\n\xE2\x80\xA6\n##\n";

Tokenizer small(std::string_view config = "") {
  return Tokenizer(read_vocabulary(kVocabulary, config).value());
}

// The pieces of a text, as text.
std::vector<std::string> words(const Tokenizer& tokenizer, std::string_view text,
                               std::size_t max = std::numeric_limits<std::size_t>::max()) {
  std::vector<TokenId> ids;
  EXPECT_EQ(tokenizer.pieces(text, max, ids), ids.size());
  std::vector<std::string> out;
  for (const TokenId id : ids) out.emplace_back(tokenizer.piece_text(id));
  return out;
}

TEST(TokenizerTest, WordsAreSplitIntoTheLongestPieces) {
  EXPECT_THAT(words(small(), "Hello, unaffable World!"),
              ElementsAre("hello", "[UNK]", "un", "##aff", "##able", "world", "!"));
  EXPECT_THAT(words(small(), "unaffablex"), ElementsAre("[UNK]"));
  EXPECT_THAT(words(small(), ""), ElementsAre());
}

TEST(TokenizerTest, EncodingPutsTheTextBetweenClsAndSep) {
  const Tokenizer tokenizer = small();
  std::vector<TokenId> ids = {7};
  EXPECT_EQ(tokenizer.encode("hello unaffable", 5, ids), 5U);
  EXPECT_THAT(ids, ElementsAre(7, 2, 5, 7, 8, 3));
  ids.clear();
  EXPECT_EQ(tokenizer.encode("hello", 2, ids), 2U);
  EXPECT_THAT(ids, ElementsAre(tokenizer.cls_id(), tokenizer.sep_id()));
}

TEST(TokenizerTest, SpecialTokensInTheTextAreCutOutBeforeAnythingElse) {
  EXPECT_THAT(words(small(), "hello[SEP]world[MASK]s"),
              ElementsAre("hello", "[SEP]", "world", "[MASK]", "[UNK]"));
  EXPECT_THAT(words(small(), "[cls]"), ElementsAre("[", "cls", "]"));
  EXPECT_THAT(words(small(), "[[SEP]]"), ElementsAre("[", "[SEP]", "]"));
  EXPECT_THAT(words(small(), "[SEP"), ElementsAre("[", "[UNK]"));
}

TEST(TokenizerTest, WordsOverTheLimitAreUnknown) {
  std::string vocabulary(kVocabulary);
  vocabulary += "b\n##b\n\xD0\xB1\n##\xD0\xB1\n";
  const Tokenizer tokenizer(read_vocabulary(vocabulary, "").value());
  std::string cyrillic;
  for (int i = 0; i < 100; ++i) cyrillic += "\xD0\x91";
  EXPECT_EQ(words(tokenizer, std::string(100, 'b')).size(), 100U);
  EXPECT_THAT(words(tokenizer, std::string(101, 'b')), ElementsAre("[UNK]"));
  EXPECT_EQ(words(tokenizer, cyrillic).size(), 100U);
  EXPECT_THAT(words(tokenizer, cyrillic + "\xD0\xB1"), ElementsAre("[UNK]"));
  EXPECT_THAT(words(tokenizer, std::string(101, 'b') + " b"), ElementsAre("[UNK]", "b"));
}

TEST(TokenizerTest, RulesOfTheModelAreHonoured) {
  constexpr std::string_view kText = "A \xC3\x89 \xE4\xB8\xAD\xE6\x96\x87";
  EXPECT_THAT(words(small(), kText), ElementsAre("a", "e", "\xE4\xB8\xAD", "\xE6\x96\x87"));
  EXPECT_THAT(words(small(R"({"do_lower_case": false})"), kText),
              ElementsAre("A", "\xC3\x89", "\xE4\xB8\xAD", "\xE6\x96\x87"));
  EXPECT_THAT(words(small(R"({"do_lower_case": false, "tokenize_chinese_chars": false})"), kText),
              ElementsAre("A", "\xC3\x89", "\xE4\xB8\xAD\xE6\x96\x87"));
  EXPECT_THAT(words(small(R"({"do_lower_case": false})"), "E\xCC\x81"), ElementsAre("E\xCC\x81"));
  EXPECT_THAT(words(small(R"({"do_lower_case": true, "strip_accents": false})"), "\xC3\x89"),
              ElementsAre("[UNK]"));
}

TEST(TokenizerTest, OfTwoSpecialTokensTheLongerOneIsFound) {
  auto definition = read_vocabulary(kVocabulary, "").value();
  definition.special_tokens = {{"<a>", 100}, {"<a><b>", 101}};
  const Tokenizer tokenizer(definition);
  EXPECT_THAT(words(tokenizer, "<a><a><b>"), ElementsAre("<a>", "<a><b>"));
}

TEST(TokenizerTest, TheLowerCaseOfACapitalIWithDotIsTwoCodePoints) {
  const std::string vocabulary = std::string(kVocabulary) + "i\xCC\x87\ni\n";
  const auto lower = [&](bool strip_accents) {
    auto definition = read_vocabulary(vocabulary, "").value();
    definition.strip_accents = strip_accents;
    return words(Tokenizer(definition), "\xC4\xB0");
  };
  EXPECT_THAT(lower(false), ElementsAre("i\xCC\x87"));
  EXPECT_THAT(lower(true), ElementsAre("i"));
}

TEST(TokenizerTest, BytesThatAreNotUtf8VanishAsTheReplacementCharacterDoes) {
  EXPECT_THAT(words(small(), "hel\xFFlo wor\xE2\x80ld\xF0"), ElementsAre("hello", "world"));
  EXPECT_THAT(words(small(), std::string_view("hel\0lo", 6)), ElementsAre("hello"));
  EXPECT_THAT(words(small(), "hel\xEF\xBF\xBDlo"), ElementsAre("hello"));
  EXPECT_THAT(words(small(), "\xE2\x80\xA6"), ElementsAre("\xE2\x80\xA6"));
}

TEST(TokenizerTest, FewerPiecesAreABeginningOfMore) {
  const Tokenizer tokenizer = small();
  const std::string text = "hello unaffable \xE4\xB8\xAD\xE6\x96\x87[SEP]unaffablexyz!!";
  const auto all = words(tokenizer, text);
  for (std::size_t n = 0; n <= all.size(); ++n) {
    EXPECT_EQ(words(tokenizer, text, n),
              std::vector(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n)));
  }
}

TEST(TokenizerTest, HugeTextsCostNoMoreThanTheirBeginning) {
  const Tokenizer tokenizer = small();
  std::vector<TokenId> ids;
  ids.reserve(64);
  const TokenId* const before = ids.data();
  EXPECT_EQ(tokenizer.pieces(std::string(10'000'000, 'b'), 8, ids), 1U);
  EXPECT_EQ(tokenizer.pieces(std::string(1'000'000, ' '), 8, ids), 0U);
  std::string text;
  while (text.size() < 10'000'000) text += "unaffable ";
  EXPECT_EQ(tokenizer.pieces(text, 8, ids), 8U);
  EXPECT_EQ(ids.data(), before);
}

// A model folder of the tests' own.
class TokenizerFilesTest : public ::testing::Test {
 protected:
  static constexpr std::string_view kJson =
      R"({"version": "1.0", "truncation": {"max_length": 4}, "padding": {"x": 1},
    "added_tokens": [{"id": 2, "content": "[CLS]", "normalized": false, "single_word": false, "special": true},
                     {"id": 9, "content": "<new>", "normalized": false}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 5,
              "vocab": {"[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "hell": 0, "##o": 4}}})";

  std::string refusal(std::string_view from, std::string_view to, ErrorCode code) {
    folder_.write("tokenizer.json", testing::with(kJson, from, to));
    const auto tokenizer = Tokenizer::load(folder_.path());
    if (tokenizer) return "(accepted)";
    EXPECT_EQ(tokenizer.error().code, code) << tokenizer.error().message;
    EXPECT_THAT(tokenizer.error().message, HasSubstr(folder_.path().string()));
    return tokenizer.error().message;
  }
  TemporaryFolder folder_;
};

TEST_F(TokenizerFilesTest, TokenizerJsonIsReadWithItsIdsAndLimits) {
  folder_.write("tokenizer.json", kJson);
  const auto tokenizer = Tokenizer::load(folder_.path());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(words(*tokenizer, "Hello hello<new>hellos [SEP]"),
              ElementsAre("hell", "##o", "hell", "##o", "<new>", "[UNK]", "[UNK]", "[UNK]", "[UNK]"));
  EXPECT_EQ(tokenizer->cls_id(), 2);
  EXPECT_EQ(tokenizer->sep_id(), 3);
  EXPECT_EQ(tokenizer->unk_id(), 1);
  EXPECT_EQ(tokenizer->vocabulary_size(), 10U);
  EXPECT_EQ(tokenizer->piece_text(5), "");
  EXPECT_EQ(tokenizer->piece_text(-1), "");
}

TEST_F(TokenizerFilesTest, AnotherKindOfTokenizerIsRefusedByName) {
  EXPECT_THAT(refusal(R"("WordPiece")", R"("BPE")", ErrorCode::kUnsupported),
              HasSubstr("model of type \"BPE\""));
  EXPECT_THAT(refusal(R"("BertNormalizer")", R"("Sequence")", ErrorCode::kUnsupported),
              HasSubstr("normalizer of type \"Sequence\""));
  EXPECT_THAT(refusal(R"("BertPreTokenizer")", R"("Metaspace")", ErrorCode::kUnsupported),
              HasSubstr("\"Metaspace\""));
  EXPECT_THAT(refusal(R"("BertProcessing")", R"("RobertaProcessing")", ErrorCode::kUnsupported),
              HasSubstr("\"RobertaProcessing\""));
  EXPECT_THAT(
      refusal(R"("normalized": false, "single)", R"("normalized": true, "single)", ErrorCode::kUnsupported),
      HasSubstr("\"[CLS]\""));
}

TEST_F(TokenizerFilesTest, DamagedFilesAreRefused) {
  EXPECT_THAT(refusal(R"("[UNK]": 1, )", "", ErrorCode::kCorrupt), HasSubstr("\"[UNK]\""));
  EXPECT_THAT(refusal(R"("hell": 0)", R"("hell": -1)", ErrorCode::kCorrupt), HasSubstr("\"hell\""));
  EXPECT_THAT(refusal(R"("hell": 0)", R"("hell": 4)", ErrorCode::kCorrupt), HasSubstr("two pieces"));
  EXPECT_THAT(refusal(R"("hell": 0)", R"("##o": 0)", ErrorCode::kCorrupt), HasSubstr("twice"));
  EXPECT_THAT(refusal(R"("hell": 0)", R"("hell": 4000000000)", ErrorCode::kCorrupt),
              HasSubstr("whole number"));
  EXPECT_THAT(refusal(R"(["[SEP]", 3])", R"(["[SEP]", 7])", ErrorCode::kCorrupt), HasSubstr("id 7"));
  EXPECT_THAT(refusal("_word\": 5", "_word\": 100000", ErrorCode::kCorrupt),
              HasSubstr("max_input_chars_per_word"));
  EXPECT_THAT(refusal(R"("##o": 4}}})", "", ErrorCode::kCorrupt), HasSubstr("not valid JSON"));
  std::filesystem::remove(folder_.path() / "tokenizer.json");
  EXPECT_EQ(Tokenizer::load(folder_.path()).error().code, ErrorCode::kNotFound);
  folder_.write("vocab.txt", "[UNK]\n[CLS]\n");
  EXPECT_THAT(Tokenizer::load(folder_.path()).error().message, HasSubstr("\"[SEP]\""));
  folder_.write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\n\xFF\n");
  EXPECT_THAT(Tokenizer::load(folder_.path()).error().message, HasSubstr("UTF-8"));
}

TEST_F(TokenizerFilesTest, VocabTxtServesWhereThereIsNoTokenizerJson) {
  folder_.write("vocab.txt", testing::with(kVocabulary, "hello\n", "hello\r\n"));
  folder_.write(
      "tokenizer_config.json",
      R"({"do_lower_case": false, "tokenizer_class": "BertTokenizer", "unk_token": {"content": "[UNK]"}})");
  const auto tokenizer = Tokenizer::load(folder_.path());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(words(*tokenizer, "A hello"), ElementsAre("A", "hello"));
  folder_.write("tokenizer_config.json", R"({"tokenizer_class": "RobertaTokenizer"})");
  EXPECT_THAT(Tokenizer::load(folder_.path()).error().message, HasSubstr("RobertaTokenizer"));
}

// The published model against what the reference said (tests/data/minilm-l6-v2.md).
class PublishedTokenizerTest : public ::testing::Test {
 protected:
  static std::filesystem::path folder() {
    const char* chosen = std::getenv("WAYBILL_MODEL");
    return chosen != nullptr ? chosen : WAYBILL_SOURCE_DIR "/models/all-MiniLM-L6-v2";
  }
};

TEST_F(PublishedTokenizerTest, EveryIdOfTheReferenceTextsIsEqual) {
  const auto tokenizer = Tokenizer::load(folder());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  std::ifstream file(WAYBILL_SOURCE_DIR "/tests/data/minilm-l6-v2.jsonl");
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    const boost::json::value value = boost::json::parse(line);
    const boost::json::string& text = value.at("text").as_string();
    std::vector<TokenId> ids;
    tokenizer->encode({text.data(), text.size()}, 256, ids);
    EXPECT_EQ(ids, boost::json::value_to<std::vector<TokenId>>(value.at("ids"))) << "line " << lines + 1;
  }
  EXPECT_EQ(lines, 459);
}

TEST_F(PublishedTokenizerTest, VocabTxtGivesTheSameIdsAsTokenizerJson) {
  const auto from_json = Tokenizer::load(folder());
  ASSERT_TRUE(from_json) << from_json.error().message;
  const auto vocabulary = read_vocabulary(read_file(folder() / "vocab.txt").value(),
                                          read_file(folder() / "tokenizer_config.json").value());
  ASSERT_TRUE(vocabulary) << vocabulary.error().message;
  const Tokenizer from_text(*vocabulary);
  ASSERT_EQ(from_text.vocabulary_size(), from_json->vocabulary_size());
  for (TokenId id = 0; id < static_cast<TokenId>(from_text.vocabulary_size()); ++id) {
    ASSERT_EQ(from_text.piece_text(id), from_json->piece_text(id));
  }
}

}  // namespace
}  // namespace waybill::embed
