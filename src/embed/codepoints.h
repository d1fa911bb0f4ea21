// What the reference tokenizer knows of each code point. Its character classes come from an old Unicode
// version (newer marks, format characters and punctuation are ordinary letters to it), so no Unicode library
// gives the same answers; the table was found by asking it (tests/peers/probe_codepoints.py).
#pragma once

#include <cstdint>
#include <span>

namespace waybill::embed {

// One rule each; a code point may have several.
enum CodePointFlag : std::uint8_t {
  kControl = 1,       // clean_text drops it
  kSpace = 2,         // clean_text makes it a space
  kIdeograph = 4,     // handle_chinese_chars puts spaces around it
  kMark = 8,          // strip_accents drops it
  kWhite = 16,        // the pre-tokenizer splits words at it
  kPunctuation = 32,  // the pre-tokenizer makes it a word of its own
};

struct CodePoint {
  std::uint8_t flags = 0;                 // CodePointFlag
  std::uint8_t decomposition_length = 0;  // 0: stays as it is
  std::uint16_t decomposition = 0;        // where it begins, in code points
  std::int32_t lower = 0;                 // add to get the lower case

  friend bool operator==(const CodePoint&, const CodePoint&) = default;
};

// Any value is allowed; beyond U+10FFFF reads as an ordinary letter. Thread-safe.
[[nodiscard]] const CodePoint& code_point(char32_t c) noexcept;

// The canonical decomposition without its nonspacing marks, for a code point that has decomposition_length >
// 0. Hangul syllables have none here: see decompose_hangul.
[[nodiscard]] std::span<const char32_t> decomposition(const CodePoint& c) noexcept;

[[nodiscard]] constexpr bool is_hangul_syllable(char32_t c) noexcept { return c >= 0xAC00 && c <= 0xD7A3; }

// Writes the two or three jamo of a syllable (Unicode 15, 3.12) and returns how many.
std::size_t decompose_hangul(char32_t c, char32_t (&jamo)[3]) noexcept;

}  // namespace waybill::embed
