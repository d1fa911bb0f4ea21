#include "config/tree.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

#include "base/utf8.h"

namespace waybill::config {
namespace {

std::string number_text(double value) {
  if (!std::isfinite(value)) return "null";
  return fmt::format("{}", value);
}

// Plain words that some reader of YAML takes for something else than text.
bool is_reserved_word(std::string_view text) {
  static constexpr std::array<std::string_view, 9> kWords = {"true", "false", "yes", "no", "on",
                                                             "off",  "null",  "y",   "n"};
  return std::ranges::any_of(kWords, [text](std::string_view word) {
    return std::ranges::equal(
        text, word, [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
  });
}

// "16MiB": begins with a digit, yet no reader takes it for a number.
bool is_size(std::string_view text) {
  const std::size_t unit = text.find_first_not_of("0123456789");
  return unit != 0 && unit != std::string_view::npos &&
         (text.substr(unit) == "B" || text.substr(unit).ends_with("iB"));
}

bool is_plain(std::string_view text) {
  if (is_size(text)) return true;
  if (text.empty() || text.back() == ' ' || text.back() == ':' || is_reserved_word(text)) return false;
  const auto first = static_cast<unsigned char>(text.front());
  if (std::isalpha(first) == 0 && first != '/' && first != '(') return false;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t at = i;
    const char32_t c = next_code_point(text, i);
    const bool printable = (c >= 0x20 && c < 0x7F) || (c >= 0xA0 && c < 0x2028) ||
                           (c > 0x2029 && c < 0xD800) || (c >= 0xE000 && c != 0xFEFF && c < 0xFFFE) ||
                           c >= 0x10000;
    if (!printable) return false;
    if (c == ':' && i < text.size() && text[i] == ' ') return false;
    if (c == '#' && at > 0 && text[at - 1] == ' ') return false;
  }
  return true;
}

// JSON's escapes are YAML's too.
void append_quoted(std::string& out, std::string_view text) {
  out.push_back('"');
  for (std::size_t i = 0; i < text.size();) {
    const char32_t c = next_code_point(text, i);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(static_cast<char>(c));
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029 || c == 0xFEFF ||
               c == 0xFFFE || c == 0xFFFF) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      append_utf8(out, c);
    }
  }
  out.push_back('"');
}

class Writer {
 public:
  explicit Writer(bool json) : json_(json) {}

  [[nodiscard]] std::string take() { return std::move(out_); }

  void json(const Tree& tree, std::size_t indent) {
    if (const auto* list = std::get_if<Tree::List>(&tree.is)) {
      json_items(*list, indent, '[', ']', [this, indent](const Tree& item) { json(item, indent + 2); });
    } else if (const auto* map = std::get_if<Tree::Map>(&tree.is)) {
      json_items(*map, indent, '{', '}', [this, indent](const auto& entry) {
        append_quoted(out_, entry.first);
        out_ += ": ";
        json(entry.second, indent + 2);
      });
    } else {
      scalar(tree);
    }
  }

  void yaml(const Tree& tree, std::size_t indent) {
    if (const auto* list = std::get_if<Tree::List>(&tree.is); list != nullptr && !list->empty()) {
      for (const Tree& item : *list) {
        out_.append(indent, ' ');
        out_ += "- ";
        // The first line of a nested block follows the dash.
        if (is_block(item)) {
          const std::size_t start = out_.size();
          yaml(item, indent + 2);
          out_.erase(start, indent + 2);
        } else {
          scalar(item);
          out_.push_back('\n');
        }
      }
    } else if (const auto* map = std::get_if<Tree::Map>(&tree.is); map != nullptr && !map->empty()) {
      for (const auto& [key, value] : *map) {
        out_.append(indent, ' ');
        out_ += yaml_text(key);
        out_.push_back(':');
        if (is_block(value)) {
          out_.push_back('\n');
          yaml(value, indent + 2);
        } else {
          out_.push_back(' ');
          scalar(value);
          out_.push_back('\n');
        }
      }
    } else {
      out_.append(indent, ' ');
      scalar(tree);
      out_.push_back('\n');
    }
  }

 private:
  static bool is_block(const Tree& tree) {
    const auto* list = std::get_if<Tree::List>(&tree.is);
    const auto* map = std::get_if<Tree::Map>(&tree.is);
    return (list != nullptr && !list->empty()) || (map != nullptr && !map->empty());
  }

  template <class Items, class WriteItem>
  void json_items(const Items& items, std::size_t indent, char open, char close,
                  const WriteItem& write_item) {
    out_.push_back(open);
    for (std::size_t i = 0; i < items.size(); ++i) {
      out_ += i == 0 ? "\n" : ",\n";
      out_.append(indent + 2, ' ');
      write_item(items[i]);
    }
    if (!items.empty()) {
      out_.push_back('\n');
      out_.append(indent, ' ');
    }
    out_.push_back(close);
  }

  void scalar(const Tree& tree) {
    if (const auto* text = std::get_if<std::string>(&tree.is)) {
      out_ += json_ ? json_text(*text) : yaml_text(*text);
    } else if (const auto* flag = std::get_if<bool>(&tree.is)) {
      out_ += *flag ? "true" : "false";
    } else if (const auto* integer = std::get_if<std::int64_t>(&tree.is)) {
      out_ += fmt::format("{}", *integer);
    } else if (const auto* number = std::get_if<double>(&tree.is)) {
      out_ += number_text(*number);
    } else {
      out_ += std::holds_alternative<Tree::List>(tree.is) ? "[]" : "{}";
    }
  }

  bool json_;
  std::string out_;
};

}  // namespace

std::string to_yaml(const Tree& tree, std::size_t indent) {
  Writer writer(false);
  writer.yaml(tree, indent);
  return writer.take();
}

std::string to_json(const Tree& tree) {
  Writer writer(true);
  writer.json(tree, 0);
  return writer.take();
}

std::string yaml_text(std::string_view text) { return is_plain(text) ? std::string(text) : json_text(text); }

std::string json_text(std::string_view text) {
  std::string out;
  append_quoted(out, text);
  return out;
}

}  // namespace waybill::config
