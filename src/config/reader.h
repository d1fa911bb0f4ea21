// Reads the sections of a configuration from YAML: the visitor of describe.h that fills them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/describe.h"
#include "config/yaml_node.h"

namespace waybill::config {

// A value as it can be shown in a message: one line, not too long.
[[nodiscard]] std::string shown(std::string_view text);

// What all readers of one file share.
class ReadContext {
 public:
  ReadContext(const ParseOptions& options, std::vector<Diagnostic>& errors)
      : options_(options), errors_(errors) {}

  void error(int line, std::string key, std::string message);
  [[nodiscard]] Position position(int line) const { return {options_.name, line}; }
  [[nodiscard]] std::filesystem::path resolve(const std::filesystem::path& path) const;

  // Appends the utterances of a file; an unreadable file is an error at `line`.
  void read_utterances_file(int line, const std::string& key, const std::filesystem::path& path,
                            std::vector<Utterance>& out);

  // Where each key that was given stands ("head.top_k").
  std::map<std::string, int, std::less<>> lines;

 private:
  const ParseOptions& options_;
  std::vector<Diagnostic>& errors_;
};

// Reads one mapping. finish() reports the keys that nobody asked for.
class SectionReader {
 public:
  SectionReader(ReadContext& context, const YamlNode& mapping, std::string path)
      : context_(context), mapping_(mapping), path_(std::move(path)) {}

  void text(const Key& key, std::string& out);
  void texts(const Key& key, std::vector<std::string>& out);
  void path(const Key& key, std::filesystem::path& out);
  void name(const Key& key, std::span<const std::string_view> names, std::string& out);
  void flag(const Key& key, bool& out);
  void number(const Key& key, Bounds bounds, double& out);
  void optional_number(const Key& key, Bounds bounds, std::optional<double>& out);
  void integer(const Key& key, Bounds bounds, std::size_t& out);
  void automatic(const Key& key, Bounds bounds, unsigned& out);  // 0 is written auto
  void count(const Key& key, std::optional<std::size_t>& out);
  void size(const Key& key, std::size_t& out);
  // server_reader.cc:
  void file(const Key& key, std::filesystem::path& out);  // like path(), but not given stays empty
  void duration(const Key& key, DurationBounds bounds, Duration& out);
  void durations(const Key& key, DurationBounds bounds,
                 std::vector<Duration>& out);  // what is given replaces the default
  void digest(const Key& key, std::string& out);
  void addresses(const Key& key, std::vector<ListenAddress>& out);  // what is given replaces the default
  void headers(const Key& key, std::vector<HttpHeader>& out);
  void threshold(const Key& key, std::optional<double>& out);
  void utterances(const Key& key, std::vector<Utterance>& out);
  void utterances_file(const Key& key, std::vector<Utterance>& out);
  void metadata(const Key& key, std::map<std::string, std::string>& out);
  void condition(const Key& key, Condition& out);

  template <class Enum, std::size_t N>
  void choice(const Key& key, const std::array<Choice<Enum>, N>& choices, Enum& out) {
    std::array<std::string_view, N> names;
    std::ranges::transform(choices, names.begin(), &Choice<Enum>::name);
    std::string chosen;
    name(key, names, chosen);
    for (const auto& choice : choices) {
      if (choice.name == chosen) out = choice.value;
    }
  }

  template <class Section>
  void section(const Key& key, Section& out) {
    // A section that is not given is read as an empty one: its paths still have to be resolved.
    YamlNode empty;
    empty.kind = YamlNode::Kind::kMapping;
    const YamlNode* node = find(key);
    if (node != nullptr && !expect_mapping(*node, path_of(key))) return;
    SectionReader reader(context_, node != nullptr ? *node : empty, path_of(key));
    describe(reader, out);
    reader.finish();
  }

  template <class Section>
  void sections(const Key& key, std::vector<Section>& out) {
    const YamlNode* node = find(key);
    if (node == nullptr || !expect_list(*node, path_of(key))) return;
    for (std::size_t i = 0; i < node->items.size(); ++i) {
      const std::string path = path_of(key) + '[' + std::to_string(i) + ']';
      if (!expect_mapping(*node->items[i], path)) continue;
      SectionReader reader(context_, *node->items[i], path);
      out.emplace_back();
      out.back().position = context_.position(node->items[i]->line);
      describe(reader, out.back());
      reader.finish();
    }
  }

  void finish();

 private:
  // The value of a key, or null; tells of a required key that is missing and of a key without a value.
  const YamlNode* find(const Key& key);
  [[nodiscard]] std::string path_of(const Key& key) const;
  bool expect_mapping(const YamlNode& node, const std::string& path);
  bool expect_list(const YamlNode& node, const std::string& path);
  // The text of a scalar that is not empty.
  std::optional<std::string> scalar(const YamlNode& node, const std::string& path, std::string_view wanted);
  std::optional<double> bounded(const YamlNode& node, const std::string& path, Bounds bounds, bool whole,
                                std::string_view or_else = {});
  std::optional<Duration> bounded_duration(std::string_view text, int line, const std::string& path,
                                           DurationBounds bounds);
  void read_texts(const YamlNode& node, const std::string& path, std::vector<std::string>& out);
  void read_condition(const YamlNode& node, const std::string& path, Condition& out);
  void read_conditions(const YamlNode& node, const std::string& path, std::vector<Condition>& out);

  ReadContext& context_;
  const YamlNode& mapping_;
  std::string path_;
  std::vector<std::string_view> known_;
};

}  // namespace waybill::config
