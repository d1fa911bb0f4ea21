#include "config/import_semantic_router.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "config/config.h"

namespace waybill::config {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

ImportedConfig imported(std::string_view text) {
  auto result = import_semantic_router(text, "layer.json");
  EXPECT_TRUE(result) << result.error().message;
  return result ? *std::move(result) : ImportedConfig{};
}

Config parsed(const ImportedConfig& import) {
  auto config = parse(import.yaml);
  EXPECT_TRUE(config) << config.error().text() << "\n" << import.yaml;
  return config ? *std::move(config) : Config{};
}

std::vector<std::string> utterances_of(const Route& route) {
  std::vector<std::string> texts;
  for (const Utterance& utterance : route.utterances) texts.push_back(utterance.text);
  return texts;
}

// The yaml with its commented settings taken in, as a person would do it.
std::string with_aurelio_scoring(std::string yaml) {
  for (const std::string_view line : {"#head:", "#  scoring:", "#  aggregation:", "#  top_k:"}) {
    const std::size_t at = yaml.find(line);
    EXPECT_NE(at, std::string::npos) << line;
    yaml.erase(at, 1);
  }
  for (std::size_t at = yaml.find("    #threshold:"); at != std::string::npos;
       at = yaml.find("    #threshold:"))
    yaml.erase(at + 4, 1);
  return yaml;
}

constexpr std::string_view kLayer = R"({
    "encoder_type": "openai",
    "encoder_name": "text-embedding-3-small",
    "routes": [
        {
            "name": "politics",
            "utterances": ["isn't politics the best thing ever", "why don't you tell me: your opinion \ud83d\ude00", "isn't politics the best thing ever"],
            "description": null,
            "function_schemas": null,
            "llm": null,
            "score_threshold": 0.3,
            "metadata": {"team": "news", "tags": ["a", "b"], "cost": 2, "none": null}
        },
        {
            "name": "get_time",
            "utterances": ["what time is it in New York?"],
            "description": "Time: of day",
            "function_schemas": [{"type": "function", "function": {"name": "get_time", "parameters": {}}}],
            "llm": {"module": "semantic_router.llms.openai", "class": "OpenAILLM", "model": "gpt-4o"},
            "score_threshold": null,
            "metadata": {}
        }
    ]
})";

TEST(ImportSemanticRouter, CarriesOverNamesUtterancesDescriptionsAndMetadata) {
  const Config config = parsed(imported(kLayer));
  ASSERT_EQ(config.routes.size(), 2U);
  EXPECT_EQ(config.routes[0].name, "politics");
  EXPECT_THAT(utterances_of(config.routes[0]), ElementsAre("isn't politics the best thing ever",
                                                           "why don't you tell me: your opinion \U0001F600"));
  EXPECT_EQ(config.routes[0].metadata.at("team"), "news");
  EXPECT_THAT(config.routes[0].metadata.at("tags"), HasSubstr("\"a\""));
  EXPECT_EQ(config.routes[0].metadata.at("cost"), "2");
  EXPECT_FALSE(config.routes[0].metadata.contains("none"));
  EXPECT_EQ(config.routes[1].description, "Time: of day");
  EXPECT_EQ(config.default_route, "default");
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(ImportSemanticRouter, SaysWhatCouldNotBeCarriedOver) {
  const ImportedConfig import = imported(kLayer);
  EXPECT_THAT(import.notes, ElementsAre(HasSubstr("openai, text-embedding-3-small"),
                                        HasSubstr("function schemas of \"get_time\" (get_time)"),
                                        HasSubstr("llm of \"get_time\" (gpt-4o)")));
  EXPECT_THAT(import.yaml, HasSubstr("# Imported from layer.json, written by semantic-router 0.x."));
  EXPECT_THAT(import.yaml, HasSubstr("# - the encoder (openai, text-embedding-3-small)"));
}

TEST(ImportSemanticRouter, KeepsThresholdsForThoseWhoChooseItsScoring) {
  const ImportedConfig import = imported(kLayer);
  const Config config = parsed(import);
  EXPECT_EQ(config.head.scoring, Scoring::kKernel);
  EXPECT_EQ(config.routes[0].threshold, std::nullopt);
  EXPECT_THAT(import.yaml, HasSubstr("aggregates of cosine similarities, not"));

  const auto as_before = parse(with_aurelio_scoring(import.yaml));
  ASSERT_TRUE(as_before) << as_before.error().text();
  EXPECT_EQ(as_before->head.scoring, Scoring::kAurelio);
  EXPECT_EQ(as_before->routes[0].threshold, 0.3);
}

TEST(ImportSemanticRouter, ReadsTheYamlOfTheLibrary) {
  const Config config = parsed(imported(R"(encoder_name: sentence-transformers/all-MiniLM-L6-v2
encoder_type: huggingface
routes:
- description: null
  function_schemas: null
  llm: null
  metadata: {}
  name: chitchat
  score_threshold: null
  utterances:
  - how's the weather today?
  - 'lovely weather today: isn''t it'
  - "it\u2019s 42"
  - 42
)"));
  ASSERT_EQ(config.routes.size(), 1U);
  EXPECT_THAT(
      utterances_of(config.routes[0]),
      ElementsAre("how's the weather today?", "lovely weather today: isn't it", "it\u2019s 42", "42"));
}

TEST(ImportSemanticRouter, HasNothingToSayAboutAnEncoderThatIsTheSame) {
  const ImportedConfig import = imported(
      R"({"encoder_type": "huggingface", "encoder_name": "sentence-transformers/all-MiniLM-L6-v2", "routes": [{"name": "a", "utterances": ["x"]}]})");
  EXPECT_THAT(import.notes, IsEmpty());
  EXPECT_THAT(import.yaml, Not(HasSubstr("Not carried over")));
}

TEST(ImportSemanticRouter, ReadsVersionOneWithItsAggregation) {
  const ImportedConfig import = imported(
      R"({"router_type": "indexed", "encoder": {"type": "fastembed", "name": "BAAI/bge-small-en-v1.5"},
    "alpha": 0.7, "top_k": 7, "aggregation": "sum", "index": {"type": "local"}, "confidence_threshold": 1.5, "calibrator": null,
    "routes": [{"name": "a", "utterances": ["x", "y"], "confidence_threshold": 0.4}, {"name": "b", "utterances": ["z"]}]})");
  EXPECT_THAT(import.yaml, HasSubstr("semantic-router 1.x"));
  EXPECT_THAT(import.notes, ElementsAre(HasSubstr("set encoder.model to its folder")));
  const auto as_before = parse(with_aurelio_scoring(import.yaml));
  ASSERT_TRUE(as_before) << as_before.error().text();
  EXPECT_EQ(as_before->head.aggregation, Aggregation::kSum);
  EXPECT_EQ(as_before->head.top_k, 7U);
  EXPECT_EQ(as_before->routes[0].threshold, 0.4);
  EXPECT_EQ(as_before->routes[1].threshold, 1.5);
}

TEST(ImportSemanticRouter, TakesChainsApartAndPutsRoutesOfOneNameTogether) {
  const ImportedConfig import = imported(R"({"router_type": "chain", "routers": [
    {"router_type": "indexed", "encoder": {"type": "openai", "name": "x"}, "routes": [{"name": "a", "utterances": ["one"]}]},
    {"router_type": "merge", "weights": [1, 2], "routers": [{"router_type": "indexed", "routes": [{"name": "a", "utterances": ["one", "two"]},
                                                                                     {"name": "b", "utterances": []}]}]}]})");
  const Config config = parsed(import);
  ASSERT_EQ(config.routes.size(), 1U);
  EXPECT_THAT(utterances_of(config.routes[0]), ElementsAre("one", "two"));
  EXPECT_THAT(import.notes, Contains(HasSubstr("\"a\" was there more than once")));
  EXPECT_THAT(import.notes, Contains(HasSubstr("the route \"b\", which has no utterances")));
}

TEST(ImportSemanticRouter, WritesTextThatYamlWouldMisread) {
  const Config config = parsed(imported(
      R"([{"name": "yes", "description": "a\nb # c", "utterances": ["- x", "null", "a: b", "tab\there", "\u0000", " "],
                                           "metadata": {"": "x", "k: v": true}}])"));
  ASSERT_EQ(config.routes.size(), 1U);
  EXPECT_EQ(config.routes[0].name, "yes");
  EXPECT_EQ(config.routes[0].description, "a b # c");
  EXPECT_THAT(utterances_of(config.routes[0]), ElementsAre("- x", "null", "a: b", "tab here"));
}

TEST(ImportSemanticRouter, ReadsWhatEachVersionOfTheLibraryWrote) {
  const std::filesystem::path folder =
      std::filesystem::path(WAYBILL_SOURCE_DIR) / "tests/data/semantic_router";
  for (const std::string version : {"v0_0", "v0_1", "v1"}) {
    std::vector<std::string> yamls;
    for (const std::string_view extension : {".json", ".yaml"}) {
      const auto text = read_file(folder / (version + std::string(extension)));
      ASSERT_TRUE(text) << text.error().message;
      const ImportedConfig import = imported(*text);
      const Config config = parsed(import);
      ASSERT_EQ(config.routes.size(), version == "v1" ? 2U : 3U) << version;
      EXPECT_EQ(config.routes[0].metadata.at("team"), "news");
      EXPECT_THAT(utterances_of(config.routes[1]),
                  ElementsAre("how's the weather today?", "lovely weather today",
                              "let's go to the chippy: now", "ça va ? 😀"));
      const auto as_before = parse(with_aurelio_scoring(import.yaml));
      ASSERT_TRUE(as_before) << as_before.error().text();
      EXPECT_EQ(as_before->routes[0].threshold, version == "v1" ? 0.42 : 0.3);
      EXPECT_EQ(as_before->head.aggregation, version == "v1" ? Aggregation::kMax : Aggregation::kMean);
      yamls.push_back(import.yaml);
    }
    EXPECT_EQ(yamls[0], yamls[1]) << version;
  }
}

TEST(ImportSemanticRouter, RefusesWhatIsNoSavedRouter) {
  for (const std::string_view text : {"", "{}", "[1, 2]", "{\"routes\": 5}", "{\"a\": [", "routes:\n\t- x",
                                      "\xFF", "{\"routes\": [{\"name\": \"a\"}]}"}) {
    const auto import = import_semantic_router(text, "layer.json");
    ASSERT_FALSE(import) << text;
    EXPECT_EQ(import.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(import.error().message, HasSubstr("layer.json"));
  }
}

}  // namespace
}  // namespace waybill::config
