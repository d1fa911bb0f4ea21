#include "upstream/json_scanner.h"

#include <bitset>
#include <charconv>

#include "base/utf8.h"
#include "upstream/byte_search.h"

namespace waybill::upstream {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// -1: not a hexadecimal digit.
int hex_digit(char c) noexcept {
  if (is_digit(c)) return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Of four digits that have been checked.
char32_t code_unit(const char* digits) noexcept {
  char32_t unit = 0;
  for (int i = 0; i < 4; ++i) unit = unit * 16 + static_cast<char32_t>(hex_digit(digits[i]));
  return unit;
}

// Appends what the escape at `at` (its backslash; the string has been checked) means, and returns its end.
const char* decode_escape(const char* at, const char* end, std::string& out) {
  switch (at[1]) {
    case 'b':
      out += '\b';
      return at + 2;
    case 'f':
      out += '\f';
      return at + 2;
    case 'n':
      out += '\n';
      return at + 2;
    case 'r':
      out += '\r';
      return at + 2;
    case 't':
      out += '\t';
      return at + 2;
    case 'u':
      break;
    default:
      out += at[1];
      return at + 2;
  }
  char32_t point = code_unit(at + 2);
  at += 6;
  if (point >= 0xD800 && point < 0xE000) {
    const bool pair = point < 0xDC00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u';
    const char32_t low = pair ? code_unit(at + 2) : 0;
    if (low >= 0xDC00 && low < 0xE000) {
      point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
      at += 6;
    } else {
      point = kReplacementCharacter;
    }
  }
  append_utf8(out, point);
  return at;
}

}  // namespace

void JsonString::append_to(std::string& out) const {
  const char* at = raw.data();
  const char* const end = at + raw.size();
  while (at != end) {
    const char* const stop = escaped ? find_string_special(at, end) : end;
    out.append(at, stop);
    at = stop == end ? end : decode_escape(stop, end, out);
  }
}

std::string_view JsonString::text(std::string& scratch) const {
  if (!escaped) return raw;
  scratch.clear();
  append_to(scratch);
  return scratch;
}

bool JsonString::decoded_is(std::string_view text) const {
  if (raw.size() > 6 * text.size()) return false;  // the longest spelling of a byte is \u0000
  std::string decoded;
  append_to(decoded);
  return decoded == text;
}

bool JsonScanner::fail() noexcept {
  if (!failed_) failed_at_ = at_;
  failed_ = true;
  at_ = end_;
  return false;
}

JsonKind JsonScanner::peek() noexcept {
  switch (look()) {
    case '{':
      return JsonKind::kObject;
    case '[':
      return JsonKind::kArray;
    case '"':
      return JsonKind::kString;
    case 't':
      return JsonKind::kTrue;
    case 'f':
      return JsonKind::kFalse;
    case 'n':
      return JsonKind::kNull;
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
      return JsonKind::kNumber;
    default:
      return JsonKind::kNothing;
  }
}

bool JsonScanner::enter(char bracket) noexcept {
  if (look() != bracket) return false;
  ++at_;
  fresh_ = true;
  return true;
}

bool JsonScanner::read(JsonString& string) noexcept { return look() == '"' && scan_string(string); }

bool JsonScanner::read(bool& flag) noexcept {
  const char first = look();
  if (first != 't' && first != 'f') return false;
  flag = first == 't';
  return scan_scalar(first);
}

// Passes over the comma before an item, if it is not the first. False at the end of the object or array.
bool JsonScanner::begin_item(char close) noexcept {
  const char c = look();
  const bool first = fresh_;
  fresh_ = false;
  if (c == close) {
    ++at_;
    return false;
  }
  if (first) return !failed_;
  if (c != ',') return fail();
  ++at_;
  return true;
}

bool JsonScanner::next_member(JsonString& key) noexcept { return begin_item('}') && scan_key(key); }

bool JsonScanner::next_element() noexcept {
  return begin_item(']') && (peek() != JsonKind::kNothing || fail());
}

bool JsonScanner::scan_key(JsonString& key) noexcept {
  if (look() != '"' || !scan_string(key) || look() != ':') return fail();
  ++at_;
  return true;
}

bool JsonScanner::scan_string(JsonString& string) noexcept {
  const char* const first = ++at_;
  string.escaped = false;
  for (;;) {
    at_ = find_string_special(at_, end_);
    if (at_ == end_) return fail();
    if (*at_ == '"') break;
    if (*at_ != '\\' || !scan_escape()) return fail();
    string.escaped = true;
  }
  string.raw = {first, static_cast<std::size_t>(at_ - first)};
  ++at_;
  return true;
}

bool JsonScanner::scan_escape() noexcept {
  if (end_ - at_ < 2) return false;
  switch (at_[1]) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
      at_ += 2;
      return true;
    case 'u':
      if (end_ - at_ < 6) return false;
      for (int i = 2; i < 6; ++i)
        if (hex_digit(at_[i]) < 0) return false;
      at_ += 6;
      return true;
    default:
      return false;
  }
}

bool JsonScanner::scan_number() noexcept {
  const auto digits = [this] {
    const char* const first = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ != first;
  };
  if (*at_ == '-') ++at_;
  if (at_ != end_ && *at_ == '0') {
    ++at_;
  } else if (!digits()) {
    return fail();
  }
  if (at_ != end_ && *at_ == '.') {
    ++at_;
    if (!digits()) return fail();
  }
  if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    if (!digits()) return fail();
  }
  return true;
}

bool JsonScanner::scan_word(std::string_view word) noexcept {
  if (std::string_view(at_, static_cast<std::size_t>(end_ - at_)).substr(0, word.size()) != word)
    return fail();
  at_ += word.size();
  return true;
}

bool JsonScanner::scan_scalar(char first) noexcept {
  switch (first) {
    case '"': {
      JsonString ignored;
      return scan_string(ignored);
    }
    case 't':
      return scan_word("true");
    case 'f':
      return scan_word("false");
    case 'n':
      return scan_word("null");
    default:
      return first == '-' || is_digit(first) ? scan_number() : fail();
  }
}

std::string_view JsonScanner::skip() noexcept {
  char c = look();
  const char* const first = at_;
  fresh_ = false;
  if (c != '{' && c != '[') {
    if (!scan_scalar(c)) return {};
    return {first, static_cast<std::size_t>(at_ - first)};
  }
  std::bitset<kMaxDepth> objects;  // which of the open levels are objects
  std::size_t depth = 0;
  JsonString key;
  for (;; c = look()) {
    if (c == '{' || c == '[') {
      const bool object = c == '{';
      if (depth == kMaxDepth) {
        too_deep_ = true;
        fail();
        return {};
      }
      ++at_;
      c = look();
      if (c != (object ? '}' : ']')) {
        if (object && !scan_key(key)) return {};
        objects[depth++] = object;
        continue;
      }
      ++at_;
    } else if (!scan_scalar(c)) {
      return {};
    }
    // A value is complete, and with it maybe what it stands in.
    for (;; ++at_) {
      if (depth == 0) return {first, static_cast<std::size_t>(at_ - first)};
      c = look();
      if (c == ',') break;
      if (c != (objects[depth - 1] ? '}' : ']')) return fail(), std::string_view();
      --depth;
    }
    ++at_;
    if (objects[depth - 1] && !scan_key(key)) return {};
  }
}

bool JsonScanner::at_end() noexcept { return !failed_ && ((look() == '\0' && at_ == end_) || fail()); }

std::optional<std::uint64_t> json_whole_number(std::string_view raw) noexcept {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 53;
  const char* const end = raw.data() + raw.size();
  std::uint64_t whole = 0;
  const auto read = std::from_chars(raw.data(), end, whole);
  if (read.ec == std::errc() && read.ptr == end) return whole <= kMost ? std::optional(whole) : std::nullopt;
  double number = 0;
  const auto read_double = std::from_chars(raw.data(), end, number);
  if (read_double.ec != std::errc() || read_double.ptr != end || !(number >= 0) ||
      number > static_cast<double>(kMost)) {
    return std::nullopt;
  }
  whole = static_cast<std::uint64_t>(number);
  return static_cast<double>(whole) == number ? std::optional(whole) : std::nullopt;
}

}  // namespace waybill::upstream
