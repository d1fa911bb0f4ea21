#include "base/utf8.h"

namespace waybill {
namespace {

constexpr unsigned char byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

struct Lead {
  int continuation_bytes;  // -1: not a lead byte
  unsigned char second_min, second_max;
  char32_t bits;
};

// Well-formed byte sequences, Unicode 15, table 3-7.
constexpr Lead lead_of(unsigned char b) {
  if (b < 0xC2) return {-1, 0, 0, 0};
  if (b < 0xE0) return {1, 0x80, 0xBF, static_cast<char32_t>(b & 0x1F)};
  if (b == 0xE0) return {2, 0xA0, 0xBF, 0};
  if (b == 0xED) return {2, 0x80, 0x9F, 0x0D};
  if (b < 0xF0) return {2, 0x80, 0xBF, static_cast<char32_t>(b & 0x0F)};
  if (b == 0xF0) return {3, 0x90, 0xBF, 0};
  if (b < 0xF4) return {3, 0x80, 0xBF, static_cast<char32_t>(b & 0x07)};
  if (b == 0xF4) return {3, 0x80, 0x8F, 4};
  return {-1, 0, 0, 0};
}

}  // namespace

char32_t next_code_point(std::string_view text, std::size_t& position) noexcept {
  const unsigned char first = byte_at(text, position++);
  if (first < 0x80) return first;
  const Lead lead = lead_of(first);
  if (lead.continuation_bytes < 0) return kReplacementCharacter;
  char32_t code_point = lead.bits;
  unsigned char min = lead.second_min;
  unsigned char max = lead.second_max;
  for (int i = 0; i < lead.continuation_bytes; ++i) {
    if (position == text.size()) return kReplacementCharacter;
    const unsigned char b = byte_at(text, position);
    if (b < min || b > max) return kReplacementCharacter;
    code_point = (code_point << 6) | (b & 0x3F);
    ++position;
    min = 0x80;
    max = 0xBF;
  }
  return code_point;
}

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&out](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

bool is_valid_utf8(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t start = i;
    const char32_t c = next_code_point(text, i);
    if (c == kReplacementCharacter && text.substr(start, i - start) != "\xEF\xBF\xBD") return false;
  }
  return true;
}

std::string to_valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) append_utf8(out, next_code_point(text, i));
  return out;
}

}  // namespace waybill
