// Conditions: the one recursive part of a configuration.
#include <fmt/format.h>

#include "base/suggest.h"
#include "config/reader.h"

namespace waybill::config {
namespace {

constexpr std::array<std::string_view, kConditionKeys.size()> condition_names() {
  std::array<std::string_view, kConditionKeys.size()> names;
  std::ranges::transform(kConditionKeys, names.begin(), &Key::name);
  return names;
}

constexpr auto kNames = condition_names();
constexpr std::string_view kAlternatives = "all, any, not, keyword, regex, language or length";

}  // namespace

void SectionReader::condition(const Key& key, Condition& out) {
  if (const YamlNode* node = find(key)) read_condition(*node, path_of(key), out);
}

void SectionReader::read_condition(const YamlNode& node, const std::string& path, Condition& out) {
  out.position = context_.position(node.line);
  if (node.kind != YamlNode::Kind::kMapping || node.entries.empty()) {
    context_.error(node.line, path,
                   fmt::format("{} must be a condition: a mapping with the key {}", path, kAlternatives));
    return;
  }
  if (node.entries.size() > 1) {
    context_.error(node.line, path,
                   fmt::format("{} has {} keys, but a condition has one; put them under all: or any:, each "
                               "with its own dash",
                               path, node.entries.size()));
  }
  const auto& [name, value] = node.entries.front();
  const std::string inner = path + '.' + name->text;
  if (std::ranges::find(kNames, name->text) == kNames.end()) {
    const std::string hint = did_you_mean(name->text, kNames);
    context_.error(name->line, inner,
                   fmt::format("unknown condition \"{}\"{}", name->text,
                               hint.empty() ? fmt::format("; known are {}", kAlternatives) : hint));
  } else if (value->kind == YamlNode::Kind::kNull) {
    context_.error(name->line, inner, fmt::format("{} has no value; give it one or remove the key", inner));
  } else if (name->text == "all") {
    read_conditions(*value, inner, out.is.emplace<Condition::All>().of);
  } else if (name->text == "any") {
    read_conditions(*value, inner, out.is.emplace<Condition::Any>().of);
  } else if (name->text == "not") {
    read_condition(*value, inner, out.is.emplace<Condition::Not>().of.emplace_back());
  } else if (name->text == "regex") {
    auto pattern = scalar(*value, inner, "one pattern; for several write any: with a regex: in each line");
    if (pattern) out.is = Condition::Regex{value->text};
  } else if (name->text == "language") {
    read_texts(*value, inner, out.is.emplace<Condition::Language>().codes);
  } else if (name->text == "keyword" && value->kind != YamlNode::Kind::kMapping) {
    read_texts(*value, inner, out.is.emplace<Condition::Keyword>().words);
  } else if (expect_mapping(*value, inner)) {
    SectionReader reader(context_, *value, inner);
    if (name->text == "keyword") {
      describe(reader, out.is.emplace<Condition::Keyword>());
    } else {
      describe(reader, out.is.emplace<Condition::Length>());
    }
    reader.finish();
  }
}

void SectionReader::read_conditions(const YamlNode& node, const std::string& path,
                                    std::vector<Condition>& out) {
  if (!expect_list(node, path)) return;
  if (node.items.empty())
    context_.error(node.line, path, fmt::format("{} is an empty list; give it conditions", path));
  out.reserve(node.items.size());
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    read_condition(*node.items[i], fmt::format("{}[{}]", path, i), out.emplace_back());
  }
}

}  // namespace waybill::config
