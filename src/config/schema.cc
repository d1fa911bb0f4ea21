#include "config/schema.h"

#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "config/describe.h"
#include "config/tree.h"

namespace waybill::config {
namespace {

Tree reference(std::string_view name) { return Tree::Map{{"$ref", "#/$defs/" + std::string(name)}}; }

Tree list_of(Tree items, bool may_be_empty) {
  Tree::Map schema = {{"type", "array"}, {"items", std::move(items)}};
  if (!may_be_empty) schema.emplace_back("minItems", 1);
  return schema;
}

// YAML's true, 42 and 1.5 are text where text is wanted.
Tree text_schema() {
  return Tree::Map{{"type", Tree::List{"string", "number", "boolean"}}, {"minLength", 1}};
}

Tree text_or_texts() {
  return Tree::Map{{"anyOf", Tree::List{reference("text"), list_of(reference("text"), false)}}};
}

Tree mapping_of_texts() { return Tree::Map{{"type", "object"}, {"additionalProperties", reference("text")}}; }

Tree number_schema(std::string_view type, Bounds bounds) {
  return Tree::Map{{"type", type}, {"minimum", bounds.min}, {"maximum", bounds.max}};
}

Tree automatic_or(Tree schema) {
  return Tree::Map{{"anyOf", Tree::List{Tree::Map{{"const", "auto"}}, std::move(schema)}}};
}

Tree names_schema(std::span<const std::string_view> names) {
  return Tree::Map{{"enum", Tree::List(names.begin(), names.end())}};
}

Tree duration_schema() { return Tree::Map{{"type", "string"}, {"pattern", "^[0-9]+ *(ms|s|m|h|d)$"}}; }

// For oneOf: one of these keys is given.
Tree::List required_each(std::initializer_list<std::string_view> keys) {
  Tree::List list;
  for (const std::string_view key : keys) list.push_back(Tree::Map{{"required", Tree::List{key}}});
  return list;
}

class SchemaBuilder {
 public:
  void text(const Key& key, const std::string& value) {
    if (value.empty()) {
      put(key, reference("text"));
    } else {
      put(key, reference("text"), value);
    }
  }
  void texts(const Key& key, const std::vector<std::string>& /*values*/) { put(key, text_or_texts()); }
  void path(const Key& key, const std::filesystem::path& value) {
    put(key, Tree::Map{{"type", "string"}}, value.string());
  }
  void name(const Key& key, std::span<const std::string_view> names, const std::string& value) {
    put(key, names_schema(names), value);
  }
  void flag(const Key& key, bool value) { put(key, Tree::Map{{"type", "boolean"}}, value); }
  void number(const Key& key, Bounds bounds, double value) {
    put(key, number_schema("number", bounds), value);
  }
  void optional_number(const Key& key, Bounds bounds, const std::optional<double>& /*value*/) {
    put(key, number_schema("number", bounds));
  }
  void integer(const Key& key, Bounds bounds, std::size_t value) {
    put(key, number_schema("integer", bounds), value);
  }
  void automatic(const Key& key, Bounds bounds, unsigned /*value*/) {
    put(key, automatic_or(number_schema("integer", bounds)), "auto");
  }
  void count(const Key& key, const std::optional<std::size_t>& /*value*/) {
    put(key, number_schema("integer", kCharacterCounts));
  }
  void size(const Key& key, std::size_t value) {
    put(key,
        Tree::Map{{"type", Tree::List{"integer", "string"}},
                  {"minimum", 0},
                  {"pattern", "^[0-9]+ *(B|[KMG]iB|[kMG]B)?$"}},
        static_cast<std::int64_t>(value));
  }
  void file(const Key& key, const std::filesystem::path& /*value*/) {
    put(key, Tree::Map{{"type", "string"}, {"minLength", 1}});
  }
  void duration(const Key& key, DurationBounds /*bounds*/, Duration value) {
    put(key, duration_schema(), duration_text(value));
  }
  void durations(const Key& key, DurationBounds /*bounds*/, const std::vector<Duration>& values) {
    Tree::List usual;
    for (const Duration value : values) usual.emplace_back(duration_text(value));
    put(key, Tree::Map{{"anyOf", Tree::List{duration_schema(), list_of(duration_schema(), false)}}},
        std::move(usual));
  }
  void digest(const Key& key, const std::string& /*value*/) {
    put(key, Tree::Map{{"type", "string"}, {"pattern", "^[0-9A-Fa-f]{64}$"}});
  }
  void addresses(const Key& key, const std::vector<ListenAddress>& values) {
    const Tree address = Tree::Map{{"type", "string"}, {"pattern", "^(systemd|unix:.+|.+:[0-9]+)$"}};
    Tree schema = Tree::Map{{"anyOf", Tree::List{address, list_of(address, false)}}};
    if (values.empty()) return put(key, std::move(schema));
    put(key, std::move(schema), values.front().text());
  }
  void headers(const Key& key, const std::vector<HttpHeader>& /*values*/) { put(key, mapping_of_texts()); }
  void threshold(const Key& key, const std::optional<double>& /*value*/) {
    put(key, automatic_or(number_schema("number", {0, kMostThreshold})), "auto");
  }
  void utterances(const Key& key, const std::vector<Utterance>& /*values*/) {
    put(key, list_of(reference("text"), true));
  }
  void utterances_file(const Key& key, const std::vector<Utterance>& /*values*/) {
    put(key, Tree::Map{{"type", "string"}});
  }
  void metadata(const Key& key, const std::map<std::string, std::string>& /*values*/) {
    put(key, mapping_of_texts());
  }
  void condition(const Key& key, const Condition& /*value*/) { put(key, reference("condition")); }
  template <class Enum, std::size_t N>
  void choice(const Key& key, const std::array<Choice<Enum>, N>& choices, Enum value) {
    Tree::List names;
    std::string_view usual;
    for (const auto& choice : choices) {
      names.emplace_back(choice.name);
      if (choice.value == value) usual = choice.name;
    }
    put(key, Tree::Map{{"enum", std::move(names)}}, usual);
  }
  template <class Section>
  void section(const Key& key, Section& value) {
    put(key, build(value));
  }
  template <class Section>
  void sections(const Key& key, std::vector<Section>& /*values*/) {
    Section item;
    put(key, list_of(build(item), true));
  }

  template <class Section>
  static Tree build(Section& section) {
    SchemaBuilder builder;
    describe(builder, section);
    Tree::Map schema = {
        {"type", "object"}, {"properties", std::move(builder.properties_)}, {"additionalProperties", false}};
    if (!builder.required_.empty()) schema.emplace_back("required", std::move(builder.required_));
    if constexpr (std::is_same_v<Section, Rule>) {
      schema.emplace_back("oneOf", required_each({"route", "veto"}));
    }
    if constexpr (std::is_same_v<Section, ApiKey>)
      schema.emplace_back("oneOf", required_each({"sha256", "env", "file"}));
    if constexpr (std::is_same_v<Section, SecretSource>)
      schema.emplace_back("oneOf", required_each({"env", "file"}));
    if constexpr (std::is_same_v<Section, Tls> || std::is_same_v<Section, UpstreamTls>) {
      schema.emplace_back("dependentRequired", Tree::Map{{"certificate", Tree::List{"private_key"}},
                                                         {"private_key", Tree::List{"certificate"}}});
    }
    if constexpr (std::is_same_v<Section, Condition::Length>) schema.emplace_back("minProperties", 1);
    return schema;
  }

 private:
  void put(const Key& key, Tree schema) {
    auto& map = std::get<Tree::Map>(schema.is);
    map.emplace(map.begin(), "description", key.about);
    properties_.emplace_back(std::string(key.name), std::move(schema));
    if (key.required) required_.emplace_back(key.name);
  }
  void put(const Key& key, Tree schema, Tree usual) {
    std::get<Tree::Map>(schema.is).emplace_back("default", std::move(usual));
    put(key, std::move(schema));
  }

  Tree::Map properties_;
  Tree::List required_;
};

// The schema of one alternative of a condition.
Tree alternative_schema(std::string_view name) {
  Condition::Keyword keyword;
  Condition::Length length;
  if (name == "all" || name == "any") return list_of(reference("condition"), false);
  if (name == "not") return reference("condition");
  if (name == "regex")
    return Tree::Map{{"type", Tree::List{"string", "number", "boolean"}}, {"format", "regex"}};
  if (name == "length") return SchemaBuilder::build(length);
  Tree schema = text_or_texts();
  if (name == "keyword")
    std::get<Tree::List>(std::get<Tree::Map>(schema.is).front().second.is)
        .push_back(SchemaBuilder::build(keyword));
  return schema;
}

Tree condition_schema() {
  Tree::Map properties;
  for (const Key& key : kConditionKeys) {
    Tree schema = alternative_schema(key.name);
    auto& map = std::get<Tree::Map>(schema.is);
    map.emplace(map.begin(), "description", key.about);
    properties.emplace_back(std::string(key.name), std::move(schema));
  }
  return Tree::Map{{"type", "object"},
                   {"properties", std::move(properties)},
                   {"additionalProperties", false},
                   {"minProperties", 1},
                   {"maxProperties", 1}};
}

}  // namespace

std::string json_schema() {
  Config defaults;
  Tree schema = SchemaBuilder::build(defaults);
  auto& map = std::get<Tree::Map>(schema.is);
  const Tree::Map head = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                          {"title", "waybill.yaml"},
                          {"description", "Configuration of Waybill: which prompts go to which model."}};
  map.insert(map.begin(), head.begin(), head.end());
  map.emplace_back("$defs", Tree::Map{{"text", text_schema()}, {"condition", condition_schema()}});
  return to_json(schema) + "\n";
}

}  // namespace waybill::config
