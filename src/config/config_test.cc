#include "config/config.h"

#include <filesystem>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace waybill::config {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string errors_of(std::string_view yaml) {
  const auto config = parse(yaml);
  EXPECT_FALSE(config) << yaml;
  return config ? std::string() : config.error().text();
}

Config parsed(std::string_view yaml, const ParseOptions& options = {}) {
  auto config = parse(yaml, options);
  EXPECT_TRUE(config) << config.error().text();
  return config ? *std::move(config) : Config{};
}

std::vector<std::string> warnings_of(std::string_view yaml) {
  std::vector<std::string> texts;
  for (const Diagnostic& warning : parsed(yaml).warnings) texts.push_back(warning.text());
  return texts;
}

ParseOptions with_files(std::map<std::string, std::string> files) {
  return {.name = "conf/waybill.yaml",
          .folder = "conf",
          .read_file = [files](const std::filesystem::path& path) -> Result<std::string> {
            const auto found = files.find(path.string());
            if (found == files.end())
              return fail(ErrorCode::kNotFound,
                          "cannot open " + path.string() + ": No such file or directory");
            return found->second;
          }};
}

constexpr std::string_view kSmall = R"(
default_route: chat
routes:
  - name: coding
    model: qwen-coder
    utterances:
      - write a function
      - "why: a segfault"
      - 42
      - no
  - name: legal
    threshold: 0.4
    utterances: [review this contract]
)";

TEST(Config, ReadsRoutesAndFillsInTheRest) {
  const Config config = parsed(kSmall);
  ASSERT_EQ(config.routes.size(), 2U);
  EXPECT_EQ(config.routes[0].model, "qwen-coder");
  EXPECT_EQ(config.routes[0].threshold, std::nullopt);
  EXPECT_EQ(config.routes[1].model, "legal");
  EXPECT_EQ(config.routes[1].threshold, 0.4);
  EXPECT_EQ(config.routes[1].position.text(), "waybill.yaml:11");
  EXPECT_EQ(config.default_route, "chat");
  EXPECT_EQ(config.default_model, "chat");
  EXPECT_EQ(config.encoder.model, "models/all-MiniLM-L6-v2");
  EXPECT_TRUE(config.tiers.static_tier.enabled);
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(Config, TakesUtterancesAsTheyAreWritten) {
  std::vector<std::string> texts;
  for (const Utterance& utterance : parsed(kSmall).routes[0].utterances) texts.push_back(utterance.text);
  EXPECT_THAT(texts, ElementsAre("write a function", "why: a segfault", "42", "no"));
}

TEST(Config, GivesTheDefaultRouteTheModelOfTheRouteOfItsName) {
  EXPECT_EQ(
      parsed("default_route: coding\nroutes: [{name: coding, model: qwen, utterances: [x]}]\n").default_model,
      "qwen");
  EXPECT_EQ(parsed("default_model: small\ndefault_route: coding\nroutes: [{name: coding, model: qwen, "
                   "utterances: [x]}]\n")
                .default_model,
            "small");
}

TEST(Config, TakesPathsFromTheFolderOfTheFile) {
  const Config config =
      parsed("encoder: {model: ../m}\ncache_folder: /var/cache/waybill\nroutes: []\n", with_files({}));
  EXPECT_EQ(config.encoder.model, "m");
  EXPECT_EQ(config.cache_folder, "/var/cache/waybill");
  EXPECT_EQ(parsed("routes: []\n", with_files({})).cache_folder, "conf/.waybill");
}

TEST(Config, ReadsSizesWithUnits) {
  const auto size = [](std::string_view text) {
    return parsed("tiers: {cache: {max_size: " + std::string(text) + "}}\nroutes: []\n")
        .tiers.cache.max_bytes;
  };
  EXPECT_EQ(size("16MiB"), 16U << 20);
  EXPECT_EQ(size("16 MiB"), 16U << 20);
  EXPECT_EQ(size("1MB"), 1'000'000U);
  EXPECT_EQ(size("2048"), 2048U);
  EXPECT_THAT(errors_of("tiers: {cache: {max_size: 16M}}\n"), HasSubstr("KiB, MiB, GiB"));
  EXPECT_THAT(errors_of("tiers: {cache: {max_size: 99999999999999999999}}\n"), HasSubstr("must be a size"));
  EXPECT_THAT(errors_of("tiers: {cache: {max_size: -1}}\n"), HasSubstr("must be a size"));
}

TEST(Config, ReadsUtterancesFromAFile) {
  const Config config =
      parsed("routes:\n  - {name: a, utterances: [inline], utterances_file: a.txt}\n",
             with_files({{"conf/a.txt", "\xEF\xBB\xBF# a comment\n  first \r\n\n\\# of days\nwhat: is\n"}}));
  std::vector<std::string> texts;
  for (const Utterance& utterance : config.routes[0].utterances)
    texts.push_back(utterance.position.text() + " " + utterance.text);
  EXPECT_THAT(texts, ElementsAre("conf/waybill.yaml:2 inline", "conf/a.txt:2 first", "conf/a.txt:4 # of days",
                                 "conf/a.txt:5 what: is"));
}

TEST(Config, NamesTheLineOfAFileThatCannotBeRead) {
  const auto missing = parse("routes:\n  - name: a\n    utterances_file: none.txt\n", with_files({}));
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().text(), HasSubstr("conf/waybill.yaml:3: cannot open conf/none.txt"));
  EXPECT_EQ(missing.error().errors.size(), 1U) << missing.error().text();
  const auto foreign = parse("routes:\n  - {name: a, utterances_file: a.txt}\n",
                             with_files({{"conf/a.txt", "ok\ncaf\xE9\n"}}));
  ASSERT_FALSE(foreign);
  EXPECT_THAT(foreign.error().text(), HasSubstr("conf/a.txt:2: this line is not UTF-8"));
}

TEST(Config, TellsAllErrorsAtOnceInTheOrderOfLines) {
  const auto config = parse(R"(defualt_route: x
routes:
  - name: coding
    utterences: [a]
    threshold: 1.5
  - name: coding
    utterances: [what: is this]
encoder: {precision: fp16, threads: 0, cache_file: yes}
)");
  ASSERT_FALSE(config);
  std::vector<std::string> texts;
  for (const Diagnostic& error : config.error().errors) texts.push_back(error.text());
  EXPECT_THAT(
      texts,
      ElementsAre(
          HasSubstr("waybill.yaml:1: unknown key \"defualt_route\"; did you mean \"default_route\"?"),
          HasSubstr("waybill.yaml:3: the route \"coding\" has no utterances"),
          HasSubstr("waybill.yaml:4: unknown key \"utterences\" in routes[0]; did you mean \"utterances\"?"),
          HasSubstr("waybill.yaml:5: routes[0].threshold is 1.5, which must be a number from 0 to 1 or auto"),
          HasSubstr("waybill.yaml:6: the route \"coding\" is there twice (first at waybill.yaml:3)"),
          HasSubstr("waybill.yaml:7: routes[1].utterances[0] must be text, but its colon"),
          HasSubstr("waybill.yaml:8: encoder.cache_file is \"yes\"; write true or false"),
          HasSubstr("waybill.yaml:8: encoder.precision is \"fp16\""),
          HasSubstr("waybill.yaml:8: encoder.threads is 0")));
  EXPECT_EQ(config.error().errors[3].key, "routes[0].threshold");
}

TEST(Config, KnowsWhatOtherToolsCallAKey) {
  EXPECT_THAT(errors_of("routes: [{name: a, samples: [x]}]\n"), HasSubstr("did you mean \"utterances\"?"));
  EXPECT_THAT(errors_of("routes: [{name: a, utterances: [x], score_threshold: 0.3}]\n"),
              HasSubstr("did you mean \"threshold\"?"));
  EXPECT_THAT(errors_of("webhooks: {}\n"), HasSubstr("known here: default_route, "));
}

TEST(Config, RefusesEmptyUtterances) {
  const std::string errors =
      errors_of("routes:\n  - name: a\n    utterances:\n      - \"  \"\n      -\n      - x\n");
  EXPECT_THAT(errors, HasSubstr("waybill.yaml:4: routes[0].utterances[0] is empty"));
  EXPECT_THAT(errors, HasSubstr("waybill.yaml:5: an empty utterance"));
}

TEST(Config, RefusesARouteThatNothingCouldChoose) {
  EXPECT_THAT(errors_of("routes:\n  - name: a\n"),
              HasSubstr("waybill.yaml:2: the route \"a\" has no utterances and no rule names it"));
  EXPECT_TRUE(parse("routes: [{name: a}]\nrules: [{route: a, when: {regex: x}}]\n"));
}

TEST(Config, WarnsOfUtterancesThatStandTwice) {
  EXPECT_THAT(
      warnings_of("routes:\n- name: a\n  utterances:\n  - hello\n  - hello\n- name: b\n  utterances:\n  - ' "
                  "hello '\n"),
      ElementsAre("waybill.yaml:5: \"hello\" stands twice in \"a\" (first at waybill.yaml:4); remove one",
                  "waybill.yaml:8: \"hello\" stands in \"b\" and in \"a\" (waybill.yaml:4), so that neither "
                  "can be told "
                  "from it; remove one"));
  EXPECT_THAT(warnings_of("routes: [{name: a, utterances: [x]}]\nhead: {out_of_scope: [x]}\n"),
              ElementsAre(HasSubstr("stands in head.out_of_scope and in \"a\"")));
}

TEST(Config, WarnsOfADefaultRouteThatIsNearlyARoute) {
  EXPECT_THAT(warnings_of("default_route: codnig\nroutes: [{name: coding, utterances: [x]}]\n"),
              ElementsAre(AllOf(HasSubstr("waybill.yaml:1"), HasSubstr("did you mean \"coding\"?"))));
  EXPECT_THAT(warnings_of("default_route: everything\nroutes: [{name: coding, utterances: [x]}]\n"),
              IsEmpty());
}

TEST(Config, WarnsOfSettingsWithoutEffectAndOfNoRoutes) {
  EXPECT_THAT(warnings_of("routes: [{name: a, utterances: [x]}]\nhead: {top_k: 3}\n"),
              ElementsAre("waybill.yaml:2: head.top_k has no effect without scoring: aurelio"));
  EXPECT_THAT(warnings_of("default_route: x\n"), ElementsAre(HasSubstr("there are no routes")));
}

TEST(Config, AllowsThresholdsAboveOneOnlyForSums) {
  EXPECT_TRUE(parse(
      "head: {scoring: aurelio, aggregation: sum}\nroutes: [{name: a, utterances: [x], threshold: 2.5}]\n"));
  EXPECT_THAT(errors_of("head: {scoring: aurelio, aggregation: sum}\nroutes: [{name: a, utterances: [x], "
                        "threshold: 5.5}]\n"),
              HasSubstr("from 0 to 5"));
  EXPECT_THAT(errors_of("head: {scoring: aurelio}\nroutes: [{name: a, utterances: [x], threshold: 2.5}]\n"),
              HasSubstr("from 0 to 1"));
  EXPECT_THAT(errors_of("routes: [{name: a, utterances: [x], threshold: nan}]\n"), HasSubstr("from 0 to 1"));
  EXPECT_THAT(errors_of("routes: [{name: a, utterances: [x], threshold: \"0.5\"}]\n"),
              HasSubstr("in quotes"));
}

TEST(Config, PutsInNoEnvironmentVariables) {
  EXPECT_THAT(errors_of("encoder: {model: \"${HOME}/model\"}\n"),
              HasSubstr("environment variables are not put in"));
  EXPECT_TRUE(parse("routes: [{name: a, utterances: [\"what does ${HOME} hold?\"]}]\n"));
}

TEST(Config, RefusesNamesThatCouldNotGoIntoAHeader) {
  EXPECT_THAT(errors_of("routes: [{name: \"a\\nb\", utterances: [x]}]\n"), HasSubstr("control character"));
}

TEST(Config, RefusesWhatIsNoConfiguration) {
  EXPECT_THAT(errors_of(""), HasSubstr("waybill.yaml: the file is empty"));
  EXPECT_THAT(errors_of("# later\n"), HasSubstr("empty"));
  EXPECT_THAT(errors_of("- a\n- b\n"), HasSubstr("a configuration is a mapping"));
  EXPECT_THAT(errors_of("routes: {coding: {}}\n"), HasSubstr("routes must be a list"));
  EXPECT_THAT(errors_of("routes:\n"), HasSubstr("routes has no value"));
  EXPECT_THAT(errors_of("encoder: 5\n"), HasSubstr("encoder must be a mapping"));
  EXPECT_THAT(errors_of("routes:\n\t- name: a\n"), HasSubstr("waybill.yaml:2: a tab"));
  EXPECT_THAT(errors_of("head: {top_k: 5}\nhead: {top_k: 6}\n"),
              HasSubstr("waybill.yaml:2: the key \"head\" stands here a second time"));
  EXPECT_THAT(errors_of(std::string(kMaxFileBytes + 1, '#')),
              HasSubstr("move utterances into utterances_file"));
}

TEST(Config, ReadsTenMegabytesOfUtterances) {
  std::string yaml = "routes:\n  - name: a\n    utterances:\n";
  for (int i = 0; yaml.size() < 10'000'000; ++i)
    yaml += "      - utterance number " + std::to_string(i) + " of a great many\n";
  const Config config = parsed(yaml);
  ASSERT_EQ(config.routes.size(), 1U);
  EXPECT_GT(config.routes[0].utterances.size(), 200'000U);
}

TEST(Config, TellsOfManyErrorsOnlyTheFirstHundred) {
  std::string yaml = "routes:\n";
  for (int i = 0; i < 5'000; ++i) yaml += "  - {nme: x}\n";
  const auto config = parse(yaml);
  ASSERT_FALSE(config);
  EXPECT_LE(config.error().errors.size(), 101U);
  EXPECT_THAT(config.error().errors.back().message, HasSubstr("more errors"));
}

TEST(Config, WritesOutYamlThatReadsTheSame) {
  const std::string yaml = to_yaml(parsed(R"(
default_route: "yes"
routes:
  - name: "10:30"
    utterances: ["null", "~", "- a", "a: b", "c #d", "#e", "'", "\"", "tab\there", "\u0007 \u2028 \ufeff", "ünï", "日本", "0x10", "1e3",
                 " trimmed ", "back\\slash", "&a", "*a", "!t", "%d", "@x", "`q`", "[", "{", "a,", "?", "-", "...", "---", "=", "<<"]
    metadata: {"": "", "a b": " kept ", "1": "true"}
    threshold: 1.0e-7
rules:
  - {when: {regex: "^\\s*$|\\x{FEFF}\n"}, route: "yes"}
tiers: {cache: {max_size: 1000}}
)"));
  EXPECT_EQ(to_yaml(parsed(yaml)), yaml);
  EXPECT_THAT(parsed(yaml).routes[0].utterances.size(), 31U);
  EXPECT_THAT(yaml, Not(HasSubstr("\t")));
}

TEST(Config, LoadsAFileAndNamesItAsGiven) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "config_test";
  ASSERT_TRUE(write_file_atomically(folder / "utterances.txt", "from the file\n"));
  ASSERT_TRUE(write_file_atomically(folder / "waybill.yaml",
                                    "routes: [{name: a, utterances_file: utterances.txt}]\n"));
  const auto config = load(folder / "waybill.yaml");
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_EQ(config->file, folder / "waybill.yaml");
  EXPECT_EQ(config->encoder.model, folder / "models/all-MiniLM-L6-v2");
  EXPECT_EQ(config->routes[0].utterances[0].position.file, (folder / "utterances.txt").string());
  const auto missing = load(folder / "none.yaml");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().text(), HasSubstr("none.yaml"));
  EXPECT_FALSE(load(folder));
  std::filesystem::remove_all(folder);
}

TEST(Config, OfTheDemonstrationIsRightWithoutAWarning) {
  const auto config = load(std::filesystem::path(WAYBILL_SOURCE_DIR) / "data/demo/waybill.yaml");
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_THAT(config->warnings, IsEmpty());
  EXPECT_EQ(config->routes.size(), 8U);
  EXPECT_EQ(config->encoder.model, std::filesystem::path(WAYBILL_SOURCE_DIR) / "models/all-MiniLM-L6-v2");
}

// The YAML blocks of the reference, so that its examples stay right. One of them is rules only.
TEST(Config, AcceptsTheExamplesOfTheReference) {
  const auto page = read_file(std::filesystem::path(WAYBILL_SOURCE_DIR) / "docs/config.md");
  ASSERT_TRUE(page) << page.error().message;
  constexpr std::string_view kFence = "```yaml\n";
  int examples = 0;
  for (std::size_t at = page->find(kFence); at != std::string::npos; at = page->find(kFence, at + 1)) {
    std::string yaml =
        page->substr(at + kFence.size(), page->find("```\n", at + kFence.size()) - at - kFence.size());
    if (yaml.starts_with('#')) continue;
    if (yaml.starts_with("rules:"))
      yaml += "routes: [{name: coding}, {name: legal, utterances: [x]}, {name: medical, utterances: [y]}]\n";
    const auto config = parse(yaml);
    ASSERT_TRUE(config) << config.error().text();
    ++examples;
  }
  EXPECT_EQ(examples, 5);
}

}  // namespace
}  // namespace waybill::config
