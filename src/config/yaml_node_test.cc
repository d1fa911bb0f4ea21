#include "config/yaml_node.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/utf8.h"

namespace waybill::config {
namespace {

using testing::HasSubstr;

const YamlNode& value_of(const YamlNode& mapping, std::string_view key) {
  static const YamlNode missing;
  for (const auto& [name, value] : mapping.entries) {
    if (name->text == key) return *value;
  }
  return missing;
}

YamlProblem problem_of(std::string_view text) {
  const auto document = YamlDocument::parse(text);
  EXPECT_FALSE(document) << text;
  return document ? YamlProblem{} : document.error();
}

TEST(YamlDocument, KeepsTheLineOfEveryValue) {
  const auto document = YamlDocument::parse("a: 1\n# a comment\n\nb:\n  - x\n  - y\nc:\n  d: |\n    text\n");
  ASSERT_TRUE(document) << document.error().message;
  const YamlNode& root = *document->root();
  EXPECT_EQ(value_of(root, "a").line, 1);
  EXPECT_EQ(value_of(root, "b").items[1]->line, 6);
  EXPECT_EQ(value_of(value_of(root, "c"), "d").line, 8);
}

TEST(YamlDocument, KnowsQuotedTextFromPlain) {
  const auto document = YamlDocument::parse("[true, 'true', \"1\", 1]");
  ASSERT_TRUE(document);
  const auto& items = document->root()->items;
  EXPECT_FALSE(items[0]->quoted);
  EXPECT_TRUE(items[1]->quoted);
  EXPECT_TRUE(items[2]->quoted);
  EXPECT_FALSE(items[3]->quoted);
}

TEST(YamlDocument, TellsWhereAMissingValueIsMissing) {
  const auto document = YamlDocument::parse("a:\n  - x\n  -\n\n  # a comment\n  - y\n  -\nb: ~\n");
  ASSERT_TRUE(document);
  const YamlNode& list = value_of(*document->root(), "a");
  EXPECT_EQ(list.items[1]->kind, YamlNode::Kind::kNull);
  EXPECT_EQ(list.items[1]->line, 3);
  EXPECT_EQ(list.items[3]->line, 7);
  EXPECT_EQ(value_of(*document->root(), "b").line, 8);
}

TEST(YamlDocument, IsEmptyForATextOfComments) {
  for (const std::string_view text : {"", "\n\n", "# nothing\n", "\xEF\xBB\xBF"}) {
    const auto document = YamlDocument::parse(text);
    ASSERT_TRUE(document) << text;
    EXPECT_TRUE(document->root() == nullptr || document->root()->kind == YamlNode::Kind::kNull);
  }
}

TEST(YamlDocument, FindsKeysThatStandTwice) {
  const auto document = YamlDocument::parse("a: 1\nb:\n  c: 1\n  c: 2\n\"a\": 3\n");
  ASSERT_TRUE(document);
  ASSERT_EQ(document->duplicate_keys().size(), 2U);
  EXPECT_EQ(document->duplicate_keys()[0].line, 4);
  EXPECT_THAT(document->duplicate_keys()[0].message, HasSubstr("\"c\""));
  EXPECT_THAT(document->duplicate_keys()[0].message, HasSubstr("line 3"));
  EXPECT_EQ(document->duplicate_keys()[1].line, 5);
}

TEST(YamlDocument, FollowsAliases) {
  const auto document = YamlDocument::parse("a: &common [x, y]\nb: *common\n");
  ASSERT_TRUE(document);
  EXPECT_EQ(&value_of(*document->root(), "a"), &value_of(*document->root(), "b"));
}

TEST(YamlDocument, RefusesAnAliasBomb) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 9; ++k) bomb += (k == 0 ? "*a" : ", *a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  EXPECT_THAT(problem_of(bomb).message, HasSubstr("aliases"));
  EXPECT_THAT(problem_of("a: &a [*a]\n").message, HasSubstr("refers to the node it stands in"));
}

TEST(YamlDocument, RefusesDeepNesting) {
  EXPECT_THAT(problem_of(std::string(100, '[')).message, HasSubstr("nested"));
  EXPECT_NE(problem_of(std::string(1'000'000, '[')).message, "");
  std::string steps;
  for (int i = 0; i < 100; ++i) steps += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_THAT(problem_of(steps).message, HasSubstr("nested"));
}

TEST(YamlDocument, ExplainsATab) {
  const YamlProblem problem = problem_of("routes:\n\t- name: a\n");
  EXPECT_EQ(problem.line, 2);
  EXPECT_THAT(problem.message, HasSubstr("tab"));
}

TEST(YamlDocument, ExplainsASyntaxErrorWithItsLine) {
  for (const std::string_view open :
       {"a: 1\nb: \"no end\nc: 2\n", "ä: 1\näöü: &x 'it''s\n", "{'': ä,\n b: \"\\\"}"}) {
    const YamlProblem problem = problem_of(open);
    EXPECT_EQ(problem.line, 2) << open;
    EXPECT_THAT(problem.message, HasSubstr("not closed"));
  }
  EXPECT_TRUE(YamlDocument::parse("ä: 'it''s'\nö: &x \"\\\"\"\n"));
  const YamlProblem colon = problem_of("a: 1\nb: what is: this\n");
  EXPECT_EQ(colon.line, 2);
  EXPECT_THAT(colon.message, HasSubstr("quotes"));
  EXPECT_EQ(problem_of("a: 1\nb: @home\n").line, 2);
  EXPECT_THAT(problem_of("- a\nb: c\n").message, HasSubstr("does not go on"));
}

TEST(YamlDocument, QuotesNoHalfCharacters) { EXPECT_TRUE(is_valid_utf8(problem_of("a: \"\\é\"\n").message)); }

TEST(YamlDocument, RefusesBytesThatAreNoText) {
  EXPECT_EQ(problem_of("a: 1\nb: \xFF\n").line, 2);
  EXPECT_THAT(problem_of("a: caf\xE9\n").message, HasSubstr("0xE9 is not UTF-8"));
  EXPECT_THAT(problem_of(std::string_view("a: \0\n", 5)).message, HasSubstr("U+0000"));
  EXPECT_THAT(problem_of("a: 1\n\x04\nb: 2\n").message, HasSubstr("U+0004"));
}

TEST(YamlDocument, RefusesWhatAConfigurationDoesNotUse) {
  EXPECT_THAT(problem_of("a: 1\n---\nb: 2\n").message, HasSubstr("second document"));
  EXPECT_THAT(problem_of("a: !secret x\n").message, HasSubstr("tag"));
  EXPECT_THAT(problem_of("? [a, b]\n: 1\n").message, HasSubstr("key"));
  EXPECT_THAT(problem_of("a: &a {x: 1}\nb: {<<: *a}\n").message, HasSubstr("merge"));
}

}  // namespace
}  // namespace waybill::config
