#include "config/reader.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/suggest.h"
#include "base/trim.h"
#include "base/utf8.h"

namespace waybill::config {
namespace {

std::string listed(std::span<const std::string_view> names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " or " : ", ";
    out += names[i];
  }
  return out;
}

// What people coming from other tools write, and what it is called here.
std::string_view other_name(std::string_view word) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 37> kNames = {{
      {"samples", "utterances"},
      {"examples", "utterances"},
      {"phrases", "utterances"},
      {"prompts", "utterances"},
      {"score_threshold", "threshold"},
      {"default", "default_route"},
      {"fallback", "default_route"},
      {"cache_dir", "cache_folder"},
      {"max_bytes", "max_size"},
      {"keywords", "keyword"},
      {"pattern", "regex"},
      {"lang", "language"},
      {"languages", "language"},
      {"min_chars", "min"},
      {"max_chars", "max"},
      {"target", "route"},
      {"bind", "listen"},
      {"address", "listen"},
      {"port", "listen"},
      {"api_keys", "keys"},
      {"cert", "certificate"},
      {"key_file", "private_key"},
      {"timeout", "deadline"},
      {"threads", "io_threads"},
      {"model_list", "models"},
      {"api_key", "keys"},
      {"api_base", "base_url"},
      {"url", "base_url"},
      {"fallbacks", "fallback"},
      {"rpm", "requests_per_minute"},
      {"tpm", "tokens_per_minute"},
      {"max_parallel_requests", "concurrency"},
      {"max_budget", "budget_per_month"},
      {"max_attempts", "max_receives"},
      {"retries", "max_receives"},
      {"visibility_timeout", "visibility"},
      {"file", "path"},
  }};
  for (const auto& [theirs, ours] : kNames) {
    if (theirs == word) return ours;
  }
  return {};
}

std::string_view kind_name(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kScalar:
      return "a single value";
    case YamlNode::Kind::kSequence:
      return "a list";
    case YamlNode::Kind::kMapping:
      return "a mapping";
  }
  return "nothing";
}

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::size_t> bytes_of(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, std::size_t>, 8> kUnits = {{
      {"", 1},
      {"B", 1},
      {"KiB", 1ULL << 10},
      {"MiB", 1ULL << 20},
      {"GiB", 1ULL << 30},
      {"kB", 1'000},
      {"MB", 1'000'000},
      {"GB", 1'000'000'000},
  }};
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto value = number_of<std::size_t>(text.substr(0, digits));
  const std::string_view unit = trimmed(text.substr(digits));
  for (const auto& [name, factor] : kUnits) {
    if (unit == name && value && *value <= (std::size_t{1} << 50) / factor) return *value * factor;
  }
  return std::nullopt;
}

}  // namespace

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (out.size() >= kMost) return out + "...";
    const char32_t c = next_code_point(text, i);
    append_utf8(out, c < 0x20 ? U' ' : c);
  }
  return out;
}

void ReadContext::error(int line, std::string key, std::string message) {
  errors_.push_back({position(line), std::move(key), std::move(message)});
}

std::filesystem::path ReadContext::resolve(const std::filesystem::path& path) const {
  return (options_.folder / path).lexically_normal();
}

void ReadContext::read_utterances_file(int line, const std::string& key, const std::filesystem::path& path,
                                       std::vector<Utterance>& out) {
  const std::filesystem::path file = resolve(path);
  const Result<std::string> text = options_.read_file(file);
  if (!text) {
    error(line, key, text.error().message + "; the path is taken from the folder of the configuration file");
    return;
  }
  int number = 0;
  for (std::string_view rest = *text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view utterance = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (++number == 1 && utterance.starts_with("\xEF\xBB\xBF")) utterance = trimmed(utterance.substr(3));
    if (utterance.empty() || utterance.starts_with('#')) continue;
    if (utterance.starts_with("\\#")) utterance.remove_prefix(1);
    const Position position{file.string(), number};
    if (!is_valid_utf8(utterance) || utterance.find('\0') != std::string_view::npos) {
      errors_.push_back({position, key, "this line is not UTF-8 text; save the file as UTF-8"});
      return;
    }
    out.push_back({std::string(utterance), position});
  }
}

void SectionReader::finish() {
  for (const auto& [key, value] : mapping_.entries) {
    if (std::ranges::find(known_, key->text) != known_.end()) continue;
    const std::string_view theirs = other_name(key->text);
    const bool named = std::ranges::find(known_, theirs) != known_.end();
    const std::string hint =
        named ? fmt::format("; did you mean \"{}\"?", theirs) : did_you_mean(key->text, known_);
    context_.error(
        key->line, path_of(Key{key->text, {}}),
        fmt::format("unknown key \"{}\"{}{}", shown(key->text), path_.empty() ? "" : " in " + path_,
                    hint.empty() ? "; known here: " + listed(known_) : hint));
  }
}

const YamlNode* SectionReader::find(const Key& key) {
  known_.push_back(key.name);
  for (const auto& [name, value] : mapping_.entries) {
    if (name->text != key.name) continue;
    context_.lines.try_emplace(path_of(key), name->line);
    if (value->kind != YamlNode::Kind::kNull) return value;
    context_.error(name->line, path_of(key),
                   fmt::format("{} has no value; give it one or remove the key", key.name));
    return nullptr;
  }
  if (key.required) {
    context_.error(mapping_.line, path_of(key),
                   fmt::format("{} is missing{}; add \"{}: ...\"", key.name,
                               path_.empty() ? "" : " in " + path_, key.name));
  }
  return nullptr;
}

std::string SectionReader::path_of(const Key& key) const {
  return path_.empty() ? std::string(key.name) : path_ + '.' + std::string(key.name);
}

bool SectionReader::expect_mapping(const YamlNode& node, const std::string& path) {
  if (node.kind == YamlNode::Kind::kMapping) return true;
  context_.error(node.line, path,
                 fmt::format("{} must be a mapping (key: value), not {}", path, kind_name(node)));
  return false;
}

bool SectionReader::expect_list(const YamlNode& node, const std::string& path) {
  if (node.kind == YamlNode::Kind::kSequence) return true;
  context_.error(
      node.line, path,
      fmt::format("{} must be a list (lines that begin with \"- \"), not {}", path, kind_name(node)));
  return false;
}

std::optional<std::string> SectionReader::scalar(const YamlNode& node, const std::string& path,
                                                 std::string_view wanted) {
  if (node.kind == YamlNode::Kind::kScalar) {
    const std::string_view text = trimmed(node.text);
    if (!text.empty()) return std::string(text);
    context_.error(node.line, path, fmt::format("{} is empty; it must be {}", path, wanted));
    return std::nullopt;
  }
  const bool colon = node.kind == YamlNode::Kind::kMapping && node.entries.size() == 1;
  context_.error(node.line, path,
                 colon
                     ? fmt::format("{} must be {}, but its colon makes it a mapping; put the text in quotes",
                                   path, wanted)
                     : fmt::format("{} must be {}, not {}", path, wanted, kind_name(node)));
  return std::nullopt;
}

void SectionReader::text(const Key& key, std::string& out) {
  const YamlNode* node = find(key);
  if (node == nullptr) return;
  auto value = scalar(*node, path_of(key), "text");
  if (!value) return;
  if (value->find("${") != std::string::npos &&
      (key.name.ends_with("model") || key.name == "cache_folder" || key.name == "base_url")) {
    context_.error(node->line, path_of(key),
                   fmt::format("{} holds \"${{\", but environment variables are not put in; write "
                               "the value itself",
                               path_of(key)));
    return;
  }
  if (std::ranges::any_of(*value, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; })) {
    context_.error(node->line, path_of(key),
                   fmt::format("{} holds a control character or a line break; write it as one line "
                               "of text",
                               path_of(key)));
    return;
  }
  out = *std::move(value);
}

void SectionReader::path(const Key& key, std::filesystem::path& out) {
  std::string value;
  text(key, value);
  out = context_.resolve(value.empty() ? out : std::filesystem::path(value));
}

void SectionReader::name(const Key& key, std::span<const std::string_view> names, std::string& out) {
  const YamlNode* node = find(key);
  if (node == nullptr) return;
  auto value = scalar(*node, path_of(key), listed(names));
  if (!value) return;
  if (std::ranges::find(names, *value) == names.end()) {
    const std::string hint = did_you_mean(*value, names);
    context_.error(
        node->line, path_of(key),
        fmt::format("{} is \"{}\", which must be {}{}", path_of(key), shown(*value), listed(names), hint));
    return;
  }
  out = *std::move(value);
}

void SectionReader::flag(const Key& key, bool& out) {
  const YamlNode* node = find(key);
  if (node == nullptr) return;
  const auto value = scalar(*node, path_of(key), "true or false");
  if (!value) return;
  if (!node->quoted && (*value == "true" || *value == "True" || *value == "TRUE")) {
    out = true;
  } else if (!node->quoted && (*value == "false" || *value == "False" || *value == "FALSE")) {
    out = false;
  } else {
    context_.error(node->line, path_of(key),
                   fmt::format("{} is \"{}\"; write true or false", path_of(key), shown(*value)));
  }
}

std::optional<double> SectionReader::bounded(const YamlNode& node, const std::string& path, Bounds bounds,
                                             bool whole, std::string_view or_else) {
  const std::string wanted =
      fmt::format("a {}number from {} to {}{}", whole ? "whole " : "", bounds.min, bounds.max, or_else);
  const auto text = scalar(node, path, wanted);
  if (!text) return std::nullopt;
  std::optional<double> value = number_of<double>(*text);
  if (node.quoted || (whole && !number_of<std::int64_t>(*text))) value = std::nullopt;
  if (value && *value >= bounds.min && *value <= bounds.max) return value;
  context_.error(node.line, path,
                 fmt::format("{} is {}{}{}, which must be {}", path, node.quoted ? "\"" : "", shown(*text),
                             node.quoted ? "\" in quotes" : "", wanted));
  return std::nullopt;
}

void SectionReader::number(const Key& key, Bounds bounds, double& out) {
  const YamlNode* node = find(key);
  if (node == nullptr) return;
  if (const auto value = bounded(*node, path_of(key), bounds, false)) out = *value;
}

void SectionReader::optional_number(const Key& key, Bounds bounds, std::optional<double>& out) {
  const YamlNode* node = find(key);
  if (node == nullptr) return;
  if (const auto value = bounded(*node, path_of(key), bounds, false)) out = value;
}

void SectionReader::integer(const Key& key, Bounds bounds, std::size_t& out) {
  const YamlNode* node = find(key);
  if (node == nullptr) return;
  if (const auto value = bounded(*node, path_of(key), bounds, true)) out = static_cast<std::size_t>(*value);
}

void SectionReader::automatic(const Key& key, Bounds bounds, unsigned& out) {
  const YamlNode* node = find(key);
  if (node == nullptr) return;
  if (node->kind == YamlNode::Kind::kScalar && node->text == "auto") {
    out = 0;
  } else if (const auto value = bounded(*node, path_of(key), bounds, true, " or auto")) {
    out = static_cast<unsigned>(*value);
  }
}

void SectionReader::count(const Key& key, std::optional<std::size_t>& out) {
  const YamlNode* node = find(key);
  if (node == nullptr) return;
  if (const auto value = bounded(*node, path_of(key), kCharacterCounts, true))
    out = static_cast<std::size_t>(*value);
}

void SectionReader::size(const Key& key, std::size_t& out) {
  const YamlNode* node = find(key);
  if (node == nullptr) return;
  const auto text = scalar(*node, path_of(key), "a size such as 16MiB");
  if (!text) return;
  if (const auto value = bytes_of(*text)) {
    out = *value;
  } else {
    context_.error(node->line, path_of(key),
                   fmt::format("{} is \"{}\", which must be a size: bytes, or a whole number with "
                               "KiB, MiB, GiB, kB, MB or GB (16MiB)",
                               path_of(key), shown(*text)));
  }
}

void SectionReader::threshold(const Key& key, std::optional<double>& out) {
  const YamlNode* node = find(key);
  if (node == nullptr || (node->kind == YamlNode::Kind::kScalar && node->text == "auto")) return;
  // With scoring: aurelio a sum may be more than 1: that is checked once the scoring is known.
  const std::optional<double> number = node->kind == YamlNode::Kind::kScalar && !node->quoted
                                           ? number_of<double>(trimmed(node->text))
                                           : std::nullopt;
  if (number && *number > 1 && *number <= kMostThreshold) {
    out = number;
  } else if (const auto value = bounded(*node, path_of(key), {0, 1}, false, " or auto")) {
    out = value;
  }
}

void SectionReader::read_texts(const YamlNode& node, const std::string& path, std::vector<std::string>& out) {
  if (node.kind != YamlNode::Kind::kSequence) {
    if (auto value = scalar(node, path, "text or a list of texts")) out.push_back(*std::move(value));
    return;
  }
  if (node.items.empty())
    context_.error(node.line, path, fmt::format("{} is an empty list; name at least one", path));
  for (const YamlNode* item : node.items) {
    if (auto value = scalar(*item, path, "a list of texts")) out.push_back(*std::move(value));
  }
}

void SectionReader::texts(const Key& key, std::vector<std::string>& out) {
  if (const YamlNode* node = find(key)) read_texts(*node, path_of(key), out);
}

void SectionReader::utterances(const Key& key, std::vector<Utterance>& out) {
  const YamlNode* node = find(key);
  if (node == nullptr || !expect_list(*node, path_of(key))) return;
  for (std::size_t i = 0; i < node->items.size(); ++i) {
    const YamlNode& item = *node->items[i];
    const std::string path = fmt::format("{}[{}]", path_of(key), i);
    if (item.kind == YamlNode::Kind::kNull) {
      context_.error(item.line, path,
                     "an empty utterance; write what people say, or remove the line (the word null itself "
                     "needs quotes)");
    } else if (auto value = scalar(item, path, "text")) {
      out.push_back({*std::move(value), context_.position(item.line)});
    }
  }
}

void SectionReader::utterances_file(const Key& key, std::vector<Utterance>& out) {
  const YamlNode* node = find(key);
  if (node == nullptr) return;
  const auto value = scalar(*node, path_of(key), "the path of a text file");
  if (value) context_.read_utterances_file(node->line, path_of(key), *value, out);
}

void SectionReader::metadata(const Key& key, std::map<std::string, std::string>& out) {
  const YamlNode* node = find(key);
  if (node == nullptr || !expect_mapping(*node, path_of(key))) return;
  for (const auto& [name, value] : node->entries) {
    const std::string path = path_of(key) + '.' + name->text;
    if (value->kind == YamlNode::Kind::kScalar) {
      out[name->text] = value->text;
    } else {
      context_.error(name->line, path,
                     fmt::format("{} must be a single value, not {}", path, kind_name(*value)));
    }
  }
}

}  // namespace waybill::config
