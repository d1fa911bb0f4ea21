// The checked, typed form of waybill.yaml. docs/config.md is the reference; config/schema.h its JSON Schema.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace waybill::config {

// Where a value stands, for messages: "waybill.yaml:12".
struct Position {
  std::string file;
  int line = 0;  // from 1; 0 when it does not come from a file
  [[nodiscard]] std::string text() const;
};

struct Utterance {
  std::string text;
  Position position;
};

// A condition on a prompt. Exactly one of the alternatives.
struct Condition {
  struct All { std::vector<Condition> of; };
  struct Any { std::vector<Condition> of; };
  struct Not { std::vector<Condition> of; /* exactly one */ };
  struct Keywords { std::vector<std::string> words; bool whole_words = true; bool case_sensitive = false; };  // any of them
  struct Regex { std::string pattern; };                          // RE2 syntax, searched anywhere
  struct Language { std::vector<std::string> codes; };            // ISO 639-1, any of them
  struct Length { std::optional<std::size_t> min_chars, max_chars; };  // in code points, both inclusive
  std::variant<All, Any, Not, Keywords, Regex, Language, Length> is;
  Position position;
};

// A rule decides before the semantic signal is asked (`route`), or forbids routes whatever it says (`veto`).
struct Rule {
  std::string name;
  Condition when;
  std::string route;               // decides for this route; empty for a veto
  std::vector<std::string> veto;   // these routes may not be chosen
  Position position;
};

struct Route {
  std::string name;
  std::string model;               // the route's name when not given
  std::string description;
  std::vector<Utterance> utterances;  // inline ones, then those of utterances_file
  std::optional<double> threshold; // a calibrated probability in [0, 1]; not given: auto
  std::map<std::string, std::string> metadata;
  Position position;
};

enum class LongText : std::uint8_t { kHead, kTail, kWindows };
enum class Scoring : std::uint8_t { kKernel, kAurelio };
enum class Aggregation : std::uint8_t { kMean, kSum, kMax };

struct Encoder {
  std::filesystem::path model = "models/all-MiniLM-L6-v2";  // a folder; relative to the configuration file
  std::string precision = "auto";  // auto, f32, bf16, int16, int8
  LongText long_text = LongText::kHead;
  unsigned threads = 0;            // 0: one per core
  bool cache_file = true;          // packed weights beside the model
};

struct Head {
  Scoring scoring = Scoring::kKernel;
  double reject_quantile = 0.05;   // `threshold: auto` rejects this share of the training utterances
  Aggregation aggregation = Aggregation::kMean;  // scoring: aurelio
  std::size_t top_k = 5;                         // scoring: aurelio
  std::vector<Utterance> out_of_scope;           // prompts that belong to no route, where there are some
};

struct ExactCache {
  bool enabled = true;
  std::size_t max_bytes = 16U << 20;
};

struct StaticTier {
  bool enabled = true;
  double agreement = 0.995;        // decides only where it has been calibrated to agree with the encoder this often
  bool when_overloaded = true;     // decides alone, marked degraded, when the encoder cannot make the deadline
};

struct Config {
  std::filesystem::path file;      // empty when made in memory
  Encoder encoder;
  Head head;
  ExactCache cache;
  StaticTier static_tier;
  std::vector<Route> routes;
  std::vector<Rule> rules;
  std::string default_route = "default";  // what a prompt gets that no route claims; need not be in `routes`
  std::string default_model;              // its model; the matching route's model, or the name, when not given
  std::filesystem::path cache_folder;     // utterance embeddings and fitted heads; default: .waybill beside the file
  std::vector<std::string> warnings;      // accepted, but worth a look (an utterance that stands in two routes)
};

// All errors of a file at once, each with file:line, what is wrong and the likely fix.
struct ConfigErrors {
  std::vector<Error> errors;
  [[nodiscard]] std::string text() const;
};

[[nodiscard]] std::expected<Config, ConfigErrors> load(const std::filesystem::path& file);
// `name` stands for the file in messages; relative paths are taken from `folder`.
[[nodiscard]] std::expected<Config, ConfigErrors> parse(std::string_view yaml, std::string_view name,
                                                        const std::filesystem::path& folder);

// The configuration with every default written out, as YAML that load() takes back.
[[nodiscard]] std::string to_yaml(const Config& config);

}  // namespace waybill::config
