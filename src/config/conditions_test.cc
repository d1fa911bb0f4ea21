#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/utf8.h"
#include "config/config.h"

namespace waybill::config {
namespace {

using testing::HasSubstr;

std::expected<Config, ConfigErrors> parse_rule(const std::string& rule) {
  return parse("routes:\n  - {name: coding, utterances: [write a function]}\nrules:\n" + rule);
}

// The condition of the only rule.
Condition condition(const std::string& yaml) {
  const auto config = parse_rule("  - {route: coding, when: " + yaml + "}\n");
  EXPECT_TRUE(config) << config.error().text();
  return config ? config->rules.front().when : Condition{};
}

std::string error_of(const std::string& rule) {
  const auto config = parse_rule(rule);
  EXPECT_FALSE(config) << rule;
  return config ? std::string() : config.error().text();
}

TEST(Conditions, TakeOneKeywordAListOrAMapping) {
  EXPECT_THAT(std::get<Condition::Keyword>(condition("{keyword: SQL}").is).words,
              testing::ElementsAre("SQL"));
  EXPECT_THAT(std::get<Condition::Keyword>(condition("{keyword: [SQL, 404]}").is).words,
              testing::ElementsAre("SQL", "404"));
  const auto keyword =
      std::get<Condition::Keyword>(condition("{keyword: {words: a, case_sensitive: true}}").is);
  EXPECT_TRUE(keyword.case_sensitive);
  EXPECT_TRUE(keyword.whole_words);
}

TEST(Conditions, NestAsWritten) {
  const auto all = std::get<Condition::All>(
      condition("{all: [{regex: a}, {any: [{length: {min: 2}}, {not: {language: de}}]}]}").is);
  ASSERT_EQ(all.of.size(), 2U);
  EXPECT_EQ(std::get<Condition::Regex>(all.of[0].is).pattern, "a");
  const auto any = std::get<Condition::Any>(all.of[1].is);
  EXPECT_EQ(std::get<Condition::Length>(any.of[0].is).min, 2U);
  EXPECT_EQ(std::get<Condition::Length>(any.of[0].is).max, std::nullopt);
  EXPECT_TRUE(
      std::holds_alternative<Condition::Language>(std::get<Condition::Not>(any.of[1].is).of.front().is));
}

TEST(Conditions, KeepThePatternAsItStands) {
  EXPECT_EQ(std::get<Condition::Regex>(condition("{regex: ' a\\s '}").is).pattern, " a\\s ");
}

TEST(Conditions, RefuseSeveralKeysInOne) {
  EXPECT_THAT(error_of("  - {route: coding, when: {regex: a, language: de}}\n"),
              HasSubstr("waybill.yaml:4: rules[0].when has 2 keys"));
}

TEST(Conditions, RefuseAPatternThatRe2DoesNotTake) {
  EXPECT_THAT(error_of("  - route: coding\n    when:\n      regex: '(?<=a)b'\n"),
              HasSubstr("waybill.yaml:6: the pattern (?<=a)b"));
  EXPECT_THAT(error_of("  - {route: coding, when: {regex: '(a'}}\n"), HasSubstr("close it"));
  EXPECT_THAT(error_of("  - {route: coding, when: {regex: '((a{100}){100}){100}'}}\n"),
              HasSubstr("repetition"));
}

TEST(Conditions, CutALongPatternBetweenCharacters) {
  std::string pattern = "(a";
  for (int i = 0; i < 40; ++i) pattern += "é";
  for (int i = 0; i < 2; ++i, pattern += 'x') {
    EXPECT_TRUE(is_valid_utf8(error_of("  - {route: coding, when: {regex: '" +
                                       pattern.substr(static_cast<std::size_t>(i)) + "('}}\n")));
  }
}

TEST(Conditions, ExplainALanguageThatIsNoCode) {
  EXPECT_THAT(error_of("  - {route: coding, when: {language: German}}\n"), HasSubstr("did you mean \"de\"?"));
  EXPECT_THAT(error_of("  - {route: coding, when: {language: [en, de-AT]}}\n"),
              HasSubstr("did you mean \"de\"?"));
  EXPECT_THAT(error_of("  - {route: coding, when: {language: xq}}\n"), HasSubstr("ISO 639-1"));
}

TEST(Conditions, RefuseALengthThatFitsNothing) {
  EXPECT_THAT(error_of("  - {route: coding, when: {length: {min: 5, max: 3}}}\n"),
              HasSubstr("no prompt fits"));
  EXPECT_THAT(error_of("  - {route: coding, when: {length: {}}}\n"), HasSubstr("min, max or both"));
  EXPECT_THAT(error_of("  - {route: coding, when: {length: {min: -1}}}\n"), HasSubstr("whole number from 0"));
}

TEST(Conditions, RefuseEmptyLists) {
  EXPECT_THAT(error_of("  - {route: coding, when: {any: []}}\n"), HasSubstr("empty list"));
  EXPECT_THAT(error_of("  - {route: coding, when: {keyword: []}}\n"), HasSubstr("empty list"));
  EXPECT_THAT(error_of("  - {route: coding, when: {}}\n"), HasSubstr("must be a condition"));
}

TEST(Conditions, SuggestTheKeyThatWasMeant) {
  EXPECT_THAT(error_of("  - {route: coding, when: {regexp: a}}\n"),
              HasSubstr("unknown condition \"regexp\"; did you mean \"regex\"?"));
}

TEST(Rules, EitherDecideOrForbid) {
  EXPECT_THAT(error_of("  - {when: {regex: a}}\n"), HasSubstr("add one of them"));
  EXPECT_THAT(error_of("  - {route: coding, veto: [coding], when: {regex: a}}\n"),
              HasSubstr("make two rules of it"));
}

TEST(Rules, NameRoutesThatAreThere) {
  EXPECT_THAT(error_of("  - {route: codign, when: {regex: a}}\n"), HasSubstr("did you mean \"coding\"?"));
  EXPECT_THAT(error_of("  - {veto: [coding, medicine], when: {regex: a}}\n"),
              HasSubstr("\"medicine\", which is not there"));
  EXPECT_TRUE(parse_rule("  - {route: default, when: {regex: a}}\n"));
  EXPECT_THAT(error_of("  - {veto: [default], when: {regex: a}}\n"), HasSubstr("take it out of veto"));
}

TEST(Rules, HaveNamesThatTellThemApart) {
  const auto config =
      parse_rule("  - {route: coding, when: {regex: a}}\n  - {name: b, route: coding, when: {regex: b}}\n");
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_EQ(config->rules[0].name, "rule 1");
  EXPECT_THAT(
      error_of(
          "  - {name: b, route: coding, when: {regex: a}}\n  - {name: b, route: coding, when: {regex: b}}\n"),
      HasSubstr("waybill.yaml:5: the rule \"b\" is there twice (first at waybill.yaml:4)"));
}

}  // namespace
}  // namespace waybill::config
