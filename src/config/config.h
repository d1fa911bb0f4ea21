// The checked, typed form of waybill.yaml. docs/config.md is the reference; config/schema.h its JSON Schema.
// The keys themselves, with their bounds and descriptions, stand once, in config/describe.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "config/jobs_config.h"
#include "config/position.h"
#include "config/server_config.h"
#include "config/upstream_config.h"

namespace waybill::config {

// Something wrong with a configuration, or worth a look.
struct Diagnostic {
  Position position;
  std::string key;      // the setting at fault, "routes[2].threshold"; empty when it is not one setting
  std::string message;  // what is wrong; the likely fix
  [[nodiscard]] std::string text() const;  // "waybill.yaml:12: what is wrong; the likely fix"
};

struct Utterance {
  std::string text;
  Position position;
};

// A condition on a prompt. Exactly one of the alternatives. What each of them means exactly: route/rules.h.
struct Condition {
  struct All {
    std::vector<Condition> of;
  };
  struct Any {
    std::vector<Condition> of;
  };
  struct Not {
    std::vector<Condition> of;  // exactly one
  };
  struct Keyword {  // any of the words
    std::vector<std::string> words;
    bool whole_words = true;
    bool case_sensitive = false;
  };
  struct Regex {  // RE2 syntax, searched anywhere in the prompt
    std::string pattern;
  };
  struct Language {  // ISO 639-1, any of them
    std::vector<std::string> codes;
  };
  struct Length {  // in code points, both inclusive; at least one of them is given
    std::optional<std::size_t> min, max;
  };
  std::variant<All, Any, Not, Keyword, Regex, Language, Length> is;
  Position position;
};

// A rule decides before the semantic signal is asked (`route`), or forbids routes whatever it says (`veto`).
struct Rule {
  std::string name;
  Condition when;
  std::string route;              // decides for this route, or for the default route; empty for a veto
  std::vector<std::string> veto;  // these routes may not be chosen; empty for a deciding rule
  Position position;
};

struct Route {
  std::string name;
  std::string model;  // the route's name when not given
  std::string description;
  std::vector<Utterance> utterances;  // inline ones, then those of utterances_file
  std::optional<double>
      threshold;  // not given: auto. A calibrated probability in [0, 1]; with scoring: aurelio its aggregate
  std::map<std::string, std::string> metadata;
  Position position;
};

enum class LongText : std::uint8_t { kAuto, kHead, kTail, kEnds, kWindows };
enum class Scoring : std::uint8_t { kKernel, kAurelio };
enum class Aggregation : std::uint8_t { kMean, kSum, kMax };

struct Encoder {
  std::filesystem::path model =
      "models/all-MiniLM-L6-v2";         // a folder; load() takes it from the file's folder
  std::string precision = "auto";        // auto, f32, bf16, int16, int8
  LongText long_text = LongText::kAuto;  // kEnds for decisions, kHead for embeddings asked for as such
  std::size_t max_windows = 8;           // long_text: windows
  unsigned threads = 0;                  // 0 ("auto"): one per core
  bool cache_file = true;                // packed weights beside the model
};

struct Head {
  Scoring scoring = Scoring::kKernel;
  double reject_quantile = 0.05;  // `threshold: auto` rejects this share of the training utterances
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
  double agreement = 0.995;  // decides only where it has been calibrated to agree with the encoder this often
  bool when_overloaded = true;  // decides alone, marked degraded, when the encoder cannot make the deadline
};

struct Tiers {
  ExactCache cache;
  StaticTier static_tier;
};

struct Config {
  std::filesystem::path file;  // empty when made in memory
  Encoder encoder;
  Head head;
  Tiers tiers;
  Server server;
  std::vector<ApiKey> keys;
  Admission admission;
  Telemetry telemetry;
  std::vector<Provider> providers;
  std::vector<Model> models;
  std::vector<Price> prices;
  Gateway gateway;
  Store store;
  Jobs jobs;
  std::vector<Route>
      routes;  // may be empty: then only models are served, or every prompt takes the default route
  std::vector<Rule> rules;
  std::string default_route = "default";  // what a prompt gets that no route claims; need not be in `routes`
  // Its model; the matching route's model, or the name, when not given. Where there are providers or models,
  // it is one of them; empty when none was given and there are neither routes nor rules, so that nothing is
  // decided.
  std::string default_model;
  std::filesystem::path cache_folder =
      ".waybill";  // utterance embeddings and fitted heads; load() takes it from the file's folder
  std::vector<Diagnostic> warnings;  // accepted, but worth a look (an utterance that stands in two routes)
};

// All errors of a file at once, in the order of their lines.
struct ConfigErrors {
  std::vector<Diagnostic> errors;
  std::vector<Diagnostic> warnings;
  [[nodiscard]] std::string text() const;  // the errors, one a line
};

// A configuration file may have this many bytes, and so may each of the files that it names.
inline constexpr std::size_t kMaxFileBytes = 16U << 20;

using ReadFile = std::function<Result<std::string>(const std::filesystem::path&)>;

// How parse() reaches the world around the text.
struct ParseOptions {
  std::string name = "waybill.yaml";  // stands for the file in messages
  std::filesystem::path folder;       // relative paths are taken from here
  ReadFile read_file;                 // reads utterances_file; not given: from disk
};

// Neither throws, whatever the bytes.
[[nodiscard]] std::expected<Config, ConfigErrors> load(const std::filesystem::path& file);
[[nodiscard]] std::expected<Config, ConfigErrors> parse(std::string_view yaml,
                                                        const ParseOptions& options = {});

enum class Secrets : bool { kHidden, kShown };

// The configuration with every default written out, as YAML that load() takes back (with kShown: the hashes
// of API keys are the only secrets, and kHidden puts a word in their place), and as one JSON object of the
// same shape.
[[nodiscard]] std::string to_yaml(const Config& config, Secrets secrets = Secrets::kHidden);
[[nodiscard]] std::string to_json(const Config& config, Secrets secrets = Secrets::kHidden);

}  // namespace waybill::config
