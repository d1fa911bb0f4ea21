#include "base/json_text.h"

#include <cstddef>
#include <optional>

#include "base/utf8.h"

namespace waybill {
namespace {

// The value of "\uXXXX" at `position`, if that is what stands there.
std::optional<unsigned> escaped_unit(std::string_view text, std::size_t position) {
  constexpr std::size_t kLength = 6;
  if (text.size() < position + kLength || text[position] != '\\' || text[position + 1] != 'u')
    return std::nullopt;
  unsigned value = 0;
  for (const char c : text.substr(position + 2, kLength - 2)) {
    value <<= 4;
    if (c >= '0' && c <= '9') {
      value |= static_cast<unsigned>(c - '0');
    } else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) {
      value |= static_cast<unsigned>((c | 0x20) - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return value;
}

bool is_high(unsigned unit) { return unit >= 0xD800 && unit <= 0xDBFF; }
bool is_low(unsigned unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }

}  // namespace

// Backslashes stand only inside strings in well-formed JSON, so that escapes can be found without parsing.
std::string decodable_json(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '\\') {
      append_utf8(out, next_code_point(text, i));
      continue;
    }
    const std::optional<unsigned> unit = escaped_unit(text, i);
    if (!unit) {
      const std::size_t length =
          i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0x80 ? 2 : 1;
      out += text.substr(i, length);
      i += length;
    } else if (const auto next = escaped_unit(text, i + 6); is_high(*unit) && next && is_low(*next)) {
      out += text.substr(i, 12);
      i += 12;
    } else {
      out += is_high(*unit) || is_low(*unit) ? std::string_view("\\ufffd") : text.substr(i, 6);
      i += 6;
    }
  }
  return out;
}

}  // namespace waybill
