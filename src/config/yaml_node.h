// YAML text as a tree that still knows its lines.
#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace waybill::config {

// A node of a document. An alias is a second pointer to the anchored node.
struct YamlNode {
  enum class Kind : std::uint8_t { kNull, kScalar, kSequence, kMapping };

  Kind kind = Kind::kNull;
  bool quoted = false;                 // a scalar in quotes, or a block scalar: text whatever it looks like
  int line = 0;                        // from 1
  std::string text;                    // kScalar, and what a null was written as
  std::vector<const YamlNode*> items;  // kSequence
  std::vector<std::pair<const YamlNode*, const YamlNode*>> entries;  // kMapping; keys are scalars
  std::uint64_t weight = 1;  // nodes under it, itself and aliased ones included
};

struct YamlProblem {
  int line = 0;  // from 1; 0: the text as a whole
  std::string message;
};

// One YAML document. Movable; nodes stay where they are.
class YamlDocument {
 public:
  // At most this deep, and at most this many nodes brought in by aliases: an alias bomb is refused, not
  // unrolled.
  static constexpr int kMaxDepth = 64;
  static constexpr std::uint64_t kMaxAliasedNodes = 100'000;

  // Reads UTF-8 text (a byte order mark is allowed). Never throws. Refused beside what YAML refuses: control
  // characters, several documents, tags of one's own, keys that are not plain text, merge keys (<<).
  [[nodiscard]] static std::expected<YamlDocument, YamlProblem> parse(std::string_view text);

  // Null for a text without content.
  [[nodiscard]] const YamlNode* root() const noexcept { return root_; }

  // Keys that stand twice in one mapping, which yaml-cpp accepts. Both stand in `entries`.
  [[nodiscard]] const std::vector<YamlProblem>& duplicate_keys() const noexcept { return duplicate_keys_; }

 private:
  friend class YamlBuilder;
  std::deque<YamlNode> nodes_;
  std::vector<YamlProblem> duplicate_keys_;
  const YamlNode* root_ = nullptr;
};

}  // namespace waybill::config
