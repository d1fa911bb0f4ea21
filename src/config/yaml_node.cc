#include "config/yaml_node.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <sstream>
#include <unordered_map>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "base/utf8.h"

namespace waybill::config {
namespace {

// The lines of a text, for messages that look at what was written.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {
    for (std::size_t at = 0; at <= text.size();) {
      starts_.push_back(at);
      const std::size_t end = text.find('\n', at);
      if (end == std::string_view::npos) break;
      at = end + 1;
    }
  }

  // Line `number`, from 1; empty beyond the end.
  [[nodiscard]] std::string_view operator[](int number) const {
    if (number < 1 || static_cast<std::size_t>(number) > starts_.size()) return {};
    const std::size_t start = starts_[static_cast<std::size_t>(number) - 1];
    return text_.substr(start, text_.find('\n', start) - start);
  }

  // Whether the quoted scalar that begins at `mark` ends before the text does, which yaml-cpp does not ask.
  [[nodiscard]] bool quote_is_closed(const YAML::Mark& mark) const {
    std::size_t at = starts_[static_cast<std::size_t>(mark.line)] + static_cast<std::size_t>(mark.column);
    while (at < text_.size() && (text_[at] == '&' || text_[at] == '!')) {  // anchor or tag
      at = text_.find_first_not_of(" \t\r\n", std::min(text_.find_first_of(" \t\r\n", at), text_.size()));
    }
    if (at >= text_.size() || (text_[at] != '"' && text_[at] != '\'')) return true;
    const char quote = text_[at++];
    for (; at < text_.size(); ++at) {
      const bool escape = text_[at] == '\\' && quote == '"';
      const bool doubled =
          text_[at] == quote && quote == '\'' && at + 1 < text_.size() && text_[at + 1] == quote;
      if (escape || doubled) {
        ++at;
      } else if (text_[at] == quote) {
        return true;
      }
    }
    return false;
  }

  [[nodiscard]] bool blank(int number) const {
    const std::string_view line = (*this)[number];
    const std::size_t first = line.find_first_not_of(" \t\r");
    return first == std::string_view::npos || line[first] == '#';
  }

  [[nodiscard]] bool indented_by_tab(int number) const {
    const std::string_view line = (*this)[number];
    return line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string_view::npos;
  }

 private:
  std::string_view text_;
  std::vector<std::size_t> starts_;
};

// Thrown by the builder through yaml-cpp's parser, and caught in YamlDocument::parse.
struct Refused {
  YamlProblem problem;
};

// What must be right before the bytes are YAML at all.
std::optional<YamlProblem> find_foreign_bytes(std::string_view text) {
  int line = 1;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t start = i;
    const char32_t c = next_code_point(text, i);
    if (c == '\n') ++line;
    if (c == kReplacementCharacter && text.substr(start, i - start) != "\xEF\xBF\xBD") {
      return YamlProblem{line, fmt::format("byte 0x{:02X} is not UTF-8; save the file as UTF-8",
                                           static_cast<unsigned char>(text[start]))};
    }
    const bool control =
        (c < 0x20 && c != '\n' && c != '\t' && c != '\r') || (c >= 0x7F && c < 0xA0 && c != 0x85);
    if (control) {
      return YamlProblem{
          line, fmt::format("the control character U+{:04X} may not stand in YAML; remove it, or write it "
                            "as \"\\x{:02X}\" in double quotes",
                            static_cast<unsigned>(c), static_cast<unsigned>(c))};
    }
  }
  return std::nullopt;
}

YamlProblem explain(const YAML::Exception& error, const Lines& lines) {
  const int line = error.mark.is_null() ? 0 : error.mark.line + 1;
  for (const int near : {line, line - 1, line + 1}) {
    if (lines.indented_by_tab(near)) {
      return {near, "a tab in the indentation, which YAML does not allow; indent with spaces"};
    }
  }
  const std::string_view said = error.msg;
  std::string hint;
  if (said.find("illegal map value") != std::string_view::npos) {
    hint = "; text with a colon in it must be in quotes";
  } else if (said.find("end of map") != std::string_view::npos ||
             said.find("end of sequence") != std::string_view::npos) {
    hint = "; check that the lines before it are indented alike, and that quotes and brackets are closed";
  } else if (said.find("end of file") != std::string_view::npos ||
             said.find("EOF") != std::string_view::npos) {
    hint = "; a quote or bracket is not closed";
  } else if (said.find("unknown token") != std::string_view::npos) {
    hint = "; text that begins with @, ` or % must be in quotes";
  } else if (said.find("escape") != std::string_view::npos) {
    hint = "; use single quotes where a backslash is meant as it stands";
  }
  // What yaml-cpp quotes may be one byte of a character.
  return {line, to_valid_utf8(fmt::format("this is not YAML: {}{}", said, hint))};
}

}  // namespace

// Makes nodes of yaml-cpp's events. yaml-cpp's own tree keeps the first of two equal keys in silence and
// does not bound what aliases repeat.
class YamlBuilder final : public YAML::EventHandler {
 public:
  YamlBuilder(YamlDocument& document, const Lines& lines) : document_(document), lines_(lines) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (document_.root_ != nullptr && !lines_[mark.line + 1].starts_with("---")) {
      throw Refused{
          {mark.line + 1,
           "this line does not go on with what stands above it; check its indentation, and that text "
           "with a colon or a quote in it is in quotes as a whole"}};
    }
    if (document_.root_ != nullptr) {
      throw Refused{
          {mark.line + 1, "a second document begins here; a configuration is one document, remove the ---"}};
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlNode& node = make(YamlNode::Kind::kNull, {}, null_line(mark));
    finish(node, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Refused{{mark.line + 1, "this alias refers to the node it stands in"}};
    aliased_ += found->second->weight;
    if (aliased_ > YamlDocument::kMaxAliasedNodes) {
      throw Refused{{mark.line + 1, fmt::format("aliases (*name) repeat more than {} values; write them out",
                                                YamlDocument::kMaxAliasedNodes)}};
    }
    place(*found->second, mark.line + 1);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode& node = make(YamlNode::Kind::kScalar, tag, mark.line + 1);
    node.quoted = tag != "?";
    if (node.quoted && !lines_.quote_is_closed(mark)) {
      throw Refused{{mark.line + 1, "the quote that opens here is not closed"}};
    }
    node.text = value;
    finish(node, anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(make(YamlNode::Kind::kSequence, tag, mark.line + 1), anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(make(YamlNode::Kind::kMapping, tag, mark.line + 1), anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    YamlNode* node;
    YAML::anchor_t anchor;
    const YamlNode* key = nullptr;                   // the key whose value comes next
    std::unordered_map<std::string_view, int> seen;  // key -> line
  };

  YamlNode& make(YamlNode::Kind kind, std::string_view tag, int line) {
    const bool standard = tag.empty() || tag == "?" || tag == "!" || tag.starts_with("tag:yaml.org,2002:");
    if (!standard) throw Refused{{line, fmt::format("the tag {} means nothing here; remove it", tag)}};
    YamlNode& node = document_.nodes_.emplace_back();
    node.kind = kind;
    node.line = line;
    return node;
  }

  void open(YamlNode& node, YAML::anchor_t anchor) {
    if (levels_.size() >= static_cast<std::size_t>(YamlDocument::kMaxDepth)) {
      throw Refused{{node.line, fmt::format("nested more than {} levels deep", YamlDocument::kMaxDepth)}};
    }
    levels_.push_back({&node, anchor, nullptr, {}});
  }

  void close() {
    YamlNode& node = *levels_.back().node;
    const YAML::anchor_t anchor = levels_.back().anchor;
    levels_.pop_back();
    finish(node, anchor);
  }

  void finish(YamlNode& node, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = &node;
    place(node, node.line);
  }

  void place(const YamlNode& node, int line) {
    if (levels_.empty()) {
      document_.root_ = &node;
      return;
    }
    Level& level = levels_.back();
    level.node->weight += node.weight;
    if (level.node->kind == YamlNode::Kind::kSequence) {
      level.node->items.push_back(&node);
    } else if (level.key == nullptr) {
      accept_key(level, node, line);
      level.key = &node;
    } else {
      level.node->entries.emplace_back(level.key, &node);
      level.key = nullptr;
    }
  }

  void accept_key(Level& level, const YamlNode& node, int line) {
    if (node.kind != YamlNode::Kind::kScalar) throw Refused{{line, "a key must be a plain word"}};
    if (node.text == "<<" && !node.quoted) {
      throw Refused{{line, "merge keys (<<) belong to an older YAML; write the settings out"}};
    }
    const auto [before, added] = level.seen.emplace(node.text, line);
    if (!added) {
      document_.duplicate_keys_.push_back(
          {line, fmt::format("the key \"{}\" stands here a second time (first on line {}); keep one of them",
                             node.text, before->second)});
    }
  }

  // yaml-cpp marks a missing value with the place of what comes after it.
  [[nodiscard]] int null_line(const YAML::Mark& mark) const {
    const int line = mark.line + 1;
    const std::string_view here =
        lines_[line].substr(std::min(lines_[line].size(), static_cast<std::size_t>(mark.column)));
    if (here.starts_with('~') || here.starts_with('n') || here.starts_with('N')) return line;
    const std::string_view before = lines_[line].substr(0, lines_[line].size() - here.size());
    if (before.find_first_not_of(" \t\r") != std::string_view::npos) return line;
    int previous = line - 1;
    while (previous > 1 && lines_.blank(previous)) --previous;
    return std::max(previous, 1);
  }

  YamlDocument& document_;
  const Lines& lines_;
  std::vector<Level> levels_;
  std::unordered_map<YAML::anchor_t, const YamlNode*> anchors_;
  std::uint64_t aliased_ = 0;
};

std::expected<YamlDocument, YamlProblem> YamlDocument::parse(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (auto foreign = find_foreign_bytes(text)) return std::unexpected(*std::move(foreign));
  const Lines lines(text);
  YamlDocument document;
  YamlBuilder builder(document, lines);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refused& refused) {
    return std::unexpected(refused.problem);
  } catch (const YAML::Exception& error) {
    return std::unexpected(explain(error, lines));
  } catch (const std::exception& error) {
    return std::unexpected(YamlProblem{0, fmt::format("this cannot be read as YAML: {}", error.what())});
  }
  return document;
}

}  // namespace waybill::config
