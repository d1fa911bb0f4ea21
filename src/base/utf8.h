// UTF-8 as it comes from outside: possibly invalid. Invalid bytes read as U+FFFD, one for each maximal
// ill-formed part (Unicode 15, 3.9, "substitution of maximal subparts"), as Python's errors="replace".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace waybill {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

// Decodes the code point at `position` (< text.size()) and moves `position` past it.
[[nodiscard]] char32_t next_code_point(std::string_view text, std::size_t& position) noexcept;

void append_utf8(std::string& out, char32_t code_point);

[[nodiscard]] bool is_valid_utf8(std::string_view text) noexcept;

// The same text with U+FFFD for what was invalid.
[[nodiscard]] std::string to_valid_utf8(std::string_view text);

}  // namespace waybill
