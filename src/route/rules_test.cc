#include "route/rules.h"

#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace waybill::route {
namespace {

using config::Condition;
using testing::HasSubstr;
using Verdict = RuleOutcome::Verdict;

config::Config configuration(const std::string& rules) {
  const std::string yaml = R"(
routes:
  - {name: coding, utterances: [write a function]}
  - {name: legal, utterances: [review this contract]}
  - {name: medical, utterances: [what helps against a headache]}
default_route: chat
rules:
)" + rules;
  auto config = config::parse(yaml);
  EXPECT_TRUE(config) << config.error().text();
  return config ? *std::move(config) : config::Config{};
}

RuleSet compiled(const std::string& rules) {
  auto set = RuleSet::compile(configuration(rules));
  EXPECT_TRUE(set) << set.error().message;
  return set ? *std::move(set) : RuleSet{};
}

// Whether a rule with this condition (YAML, in flow style) decides the prompt.
bool holds(const std::string& condition, std::string_view prompt) {
  RuleOutcome outcome;
  compiled("  - {route: coding, when: " + condition + "}").decide(prompt, outcome);
  return outcome.verdict == Verdict::kRoute;
}

TEST(Rules, FindAKeywordOnlyAsAWholeWord) {
  EXPECT_TRUE(holds("{keyword: [java]}", "is java dead?"));
  EXPECT_TRUE(holds("{keyword: [java]}", "java"));
  EXPECT_TRUE(holds("{keyword: [java]}", "\"java\""));
  EXPECT_FALSE(holds("{keyword: [java]}", "javascript"));
  EXPECT_FALSE(holds("{keyword: [java]}", "my_java"));
  EXPECT_FALSE(holds("{keyword: [java]}", "java2"));
  EXPECT_TRUE(holds("{keyword: {words: [java], whole_words: false}}", "javascript"));
}

TEST(Rules, KnowWordsBeyondAscii) {
  EXPECT_TRUE(holds("{keyword: [naïve]}", "a NAÏVE Bayes model"));
  EXPECT_FALSE(holds("{keyword: [na]}", "naïve"));
  EXPECT_FALSE(holds("{keyword: [stra]}", "straße"));
  EXPECT_TRUE(holds("{keyword: [договор]}", "Проверь ДОГОВОР, пожалуйста"));
  EXPECT_FALSE(holds("{keyword: [договор]}", "договоры"));
}

TEST(Rules, FindWordsOfScriptsWithoutSpacesAnywhere) {
  EXPECT_TRUE(holds("{keyword: [合同]}", "请帮我看看这份合同有没有问题"));
  EXPECT_TRUE(holds("{keyword: [สัญญา]}", "ช่วยตรวจสัญญานี้"));
}

TEST(Rules, TakeKeywordsThatEndInPunctuation) {
  EXPECT_TRUE(holds("{keyword: [C++]}", "sort a vector in C++"));
  EXPECT_TRUE(holds("{keyword: [C++]}", "a C++20 question"));
  EXPECT_FALSE(holds("{keyword: [C++]}", "MSVC++"));
  EXPECT_TRUE(holds("{keyword: [.env, '#todo']}", "where does my .env file go"));
}

TEST(Rules, FoldCaseUnlessTold) {
  EXPECT_TRUE(holds("{keyword: [Segfault]}", "SEGFAULT in my loop"));
  EXPECT_FALSE(holds("{keyword: {words: [US], case_sensitive: true}}", "tell us about it"));
  EXPECT_TRUE(holds("{keyword: {words: [US], case_sensitive: true}}", "the law of the US says"));
}

TEST(Rules, AcceptAThousandKeywords) {
  std::string words;
  for (int i = 0; i < 1000; ++i) words += (i == 0 ? "" : ", ") + ("keyword" + std::to_string(i));
  EXPECT_TRUE(holds("{keyword: [" + words + "]}", "about keyword777, please"));
  EXPECT_FALSE(holds("{keyword: [" + words + "]}", "about keyword1777, please"));
}

TEST(Rules, SearchAPatternAnywhere) {
  EXPECT_TRUE(holds("{regex: 'Traceback \\(most recent'}", "help:\nTraceback (most recent call last)"));
  EXPECT_FALSE(holds("{regex: '^\\d+$'}", "12a"));
  EXPECT_TRUE(holds("{regex: '(?i)§\\s*\\d+'}", "was sagt § 433?"));
}

TEST(Rules, ReadInvalidBytesAsReplacementCharacters) {
  EXPECT_TRUE(holds("{keyword: [java]}", "\xFFjava\xFE"));
  EXPECT_TRUE(holds("{length: {min: 3, max: 3}}", "a\xFF\xE2\x82"));
  EXPECT_TRUE(holds("{keyword: [java]}", std::string_view("\0java\0", 6)));
}

TEST(Rules, CountCharactersNotBytes) {
  EXPECT_TRUE(holds("{length: {max: 4}}", "äöü!"));
  EXPECT_FALSE(holds("{length: {max: 3}}", "äöü!"));
  EXPECT_TRUE(holds("{length: {min: 2}}", "日本"));
  EXPECT_FALSE(holds("{length: {min: 3}}", "日本"));
  EXPECT_TRUE(holds("{length: {max: 0}}", ""));
}

TEST(Rules, TellLanguagesApart) {
  EXPECT_TRUE(holds("{language: [de, fr]}", "Wie kündige ich meinen Mietvertrag fristgerecht?"));
  EXPECT_TRUE(holds("{language: [de, fr]}", "Comment résilier mon contrat de location ?"));
  EXPECT_FALSE(holds("{language: [de, fr]}", "How do I end my tenancy agreement in time?"));
  EXPECT_TRUE(holds("{language: zh}", "什么是机器学习"));
  EXPECT_TRUE(holds("{language: nb}", "Kan du hjelpe meg med dette problemet?"));
}

TEST(Rules, CallATextThatIsTooShortNoLanguage) {
  EXPECT_FALSE(holds("{language: [en, de]}", "ok"));
  EXPECT_FALSE(holds("{language: en}", "123 + 456"));
  EXPECT_TRUE(holds("{not: {language: en}}", "ok"));
}

TEST(Rules, LookForTheLanguageOnlyAtTheStart) {
  std::string prompt;
  while (prompt.size() < RuleSet::kLanguageBytes)
    prompt += "Wie kündige ich meinen Mietvertrag fristgerecht? ";
  prompt += std::string(100'000, 'x');
  EXPECT_TRUE(holds("{language: de}", prompt));
}

TEST(Rules, CombineConditions) {
  const std::string both =
      "{all: [{keyword: [contract]}, {not: {any: [{keyword: [poem]}, {length: {max: 12}}]}}]}";
  EXPECT_TRUE(holds(both, "please check this contract"));
  EXPECT_FALSE(holds(both, "a poem about a contract"));
  EXPECT_FALSE(holds(both, "my contract"));
}

TEST(Rules, LetTheFirstThatHoldsDecide) {
  const RuleSet rules = compiled(
      "  - {name: first, route: legal, when: {keyword: [contract]}}\n"
      "  - {name: second, route: coding, when: {keyword: [contract, code]}}\n");
  RuleOutcome outcome;
  rules.decide("contract code", outcome);
  EXPECT_EQ(outcome.verdict, Verdict::kRoute);
  EXPECT_EQ(outcome.route, 1U);
  EXPECT_EQ(outcome.rule, "first");
  rules.decide("code", outcome);
  EXPECT_EQ(outcome.route, 0U);
  EXPECT_EQ(outcome.rule, "second");
  rules.decide("neither", outcome);
  EXPECT_EQ(outcome.verdict, Verdict::kOpen);
  EXPECT_EQ(outcome.rule, "");
}

TEST(Rules, CollectVetoesFromAllThatHold) {
  const RuleSet rules = compiled(
      "  - {name: short, veto: [legal], when: {length: {max: 20}}}\n"
      "  - {name: polite, veto: [medical], when: {keyword: [please]}}\n");
  RuleOutcome outcome;
  rules.decide("a contract, please", outcome);
  EXPECT_EQ(outcome.verdict, Verdict::kOpen);
  EXPECT_TRUE(outcome.vetoed(1));
  EXPECT_TRUE(outcome.vetoed(2));
  EXPECT_FALSE(outcome.vetoed(0));
  EXPECT_EQ(outcome.veto_rule, "short");
  rules.decide("a contract that is rather long to read", outcome);
  EXPECT_FALSE(outcome.vetoed(1));
  EXPECT_EQ(outcome.veto_rule, "");
}

TEST(Rules, PassOverADecisionThatIsVetoed) {
  const RuleSet rules = compiled(
      "  - {name: law, route: legal, when: {keyword: [contract]}}\n"
      "  - {name: code, route: coding, when: {keyword: [contract]}}\n"
      "  - {name: no law, veto: [legal], when: {keyword: [joke]}}\n");
  RuleOutcome outcome;
  rules.decide("a joke about a contract", outcome);
  EXPECT_EQ(outcome.rule, "code");
}

TEST(Rules, MayDecideForADefaultRouteThatIsNoRoute) {
  const RuleSet rules = compiled("  - {name: small talk, route: chat, when: {length: {max: 5}}}\n");
  RuleOutcome outcome;
  rules.decide("hi", outcome);
  EXPECT_EQ(outcome.verdict, Verdict::kDefault);
  EXPECT_EQ(outcome.rule, "small talk");
}

TEST(Rules, AreQuietWhenThereAreNone) {
  const RuleSet rules;
  EXPECT_TRUE(rules.empty());
  RuleOutcome outcome;
  outcome.veto_bits = {7};
  outcome.rule = "left over";
  rules.decide("anything", outcome);
  EXPECT_EQ(outcome.verdict, Verdict::kOpen);
  EXPECT_EQ(outcome.rule, "");
  EXPECT_FALSE(outcome.vetoed(0));
}

TEST(Rules, NameEveryFaultWithItsLine) {
  config::Rule bad_pattern;
  bad_pattern.name = "pattern";
  bad_pattern.route = "coding";
  bad_pattern.when = {Condition::Regex{"(a{1000}){1000}"}, {"rules.yaml", 3}};
  config::Rule bad_route;
  bad_route.name = "route";
  bad_route.route = "codng";
  bad_route.when = {Condition::Not{}, {"rules.yaml", 7}};
  bad_route.position = {"rules.yaml", 6};
  const std::array<config::Rule, 2> rules = {bad_pattern, bad_route};
  const std::array<std::string_view, 1> routes = {"coding"};
  const auto set = RuleSet::compile(rules, routes, "default");
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(set.error().message, HasSubstr("rules.yaml:3: the pattern (a{1000}){1000}"));
  EXPECT_THAT(set.error().message, HasSubstr("rules.yaml:6: the rule \"route\" names the route \"codng\""));
  EXPECT_THAT(set.error().message, HasSubstr("rules.yaml:7: not: takes exactly one condition"));
}

TEST(Rules, DecideOnSeveralThreadsAtOnce) {
  const RuleSet rules = compiled(
      "  - {route: legal, when: {all: [{keyword: [Vertrag]}, {language: de}]}}\n"
      "  - {veto: [medical], when: {regex: 'x+y'}}\n");
  const auto work = [&rules] {
    RuleOutcome outcome;
    for (int i = 0; i < 200; ++i) {
      rules.decide("Bitte prüfen Sie diesen Vertrag auf unklare Stellen, xxy.", outcome);
      ASSERT_EQ(outcome.route, 1U);
      ASSERT_TRUE(outcome.vetoed(2));
    }
  };
  std::thread other(work);
  work();
  other.join();
}

}  // namespace
}  // namespace waybill::route
