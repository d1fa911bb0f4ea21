// A small tree of values that is written as YAML or JSON: what `config show`, `config schema` and imports
// print.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace waybill::config {

struct Tree {
  using List = std::vector<Tree>;
  using Map = std::vector<std::pair<std::string, Tree>>;  // in the order of insertion

  std::variant<bool, std::int64_t, double, std::string, List, Map> is;

  Tree(bool value)
      : is(value) {}  // NOLINT(google-explicit-constructor): literals read as the values they are
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Tree(T value) : is(static_cast<std::int64_t>(value)) {}   // NOLINT(google-explicit-constructor)
  Tree(double value) : is(value) {}                         // NOLINT(google-explicit-constructor)
  Tree(std::string value) : is(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Tree(std::string_view value) : is(std::string(value)) {}  // NOLINT(google-explicit-constructor)
  Tree(const char* value) : is(std::string(value)) {}       // NOLINT(google-explicit-constructor)
  Tree(List value) : is(std::move(value)) {}                // NOLINT(google-explicit-constructor)
  Tree(Map value) : is(std::move(value)) {}                 // NOLINT(google-explicit-constructor)
};

// Block style, `indent` spaces from the left, each line ended by a newline.
[[nodiscard]] std::string to_yaml(const Tree& tree, std::size_t indent = 0);

// Two spaces a level; invalid UTF-8 becomes U+FFFD; no newline at the end.
[[nodiscard]] std::string to_json(const Tree& tree);

// A scalar as YAML: plain where every YAML reader takes it for that very text, else in double quotes.
[[nodiscard]] std::string yaml_text(std::string_view text);

// A string as JSON, in its quotes.
[[nodiscard]] std::string json_text(std::string_view text);

}  // namespace waybill::config
