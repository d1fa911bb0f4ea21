// The first byte of some few kinds, 32 bytes at a time: what the readers of this part spend their time on.
#pragma once

#include <bit>
#include <cstdint>

#include <immintrin.h>

namespace waybill::upstream {

// The first '\n' or '\r' in [from, end), or end.
[[nodiscard]] inline const char* find_line_end(const char* from, const char* end) noexcept {
  const __m256i lf = _mm256_set1_epi8('\n'), cr = _mm256_set1_epi8('\r');
  for (; end - from >= 32; from += 32) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m256i found = _mm256_or_si256(_mm256_cmpeq_epi8(bytes, lf), _mm256_cmpeq_epi8(bytes, cr));
    const auto mask = static_cast<std::uint32_t>(_mm256_movemask_epi8(found));
    if (mask != 0) return from + std::countr_zero(mask);
  }
  while (from != end && *from != '\n' && *from != '\r') ++from;
  return from;
}

// The first byte in [from, end) that a JSON string cannot hold as it is, or end: a quote, a backslash, or a
// control character.
[[nodiscard]] inline const char* find_string_special(const char* from, const char* end) noexcept {
  const __m256i quote = _mm256_set1_epi8('"'), backslash = _mm256_set1_epi8('\\');
  const __m256i last_control = _mm256_set1_epi8(0x1F);
  for (; end - from >= 32; from += 32) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m256i control = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, last_control), bytes);
    const __m256i found = _mm256_or_si256(
        control, _mm256_or_si256(_mm256_cmpeq_epi8(bytes, quote), _mm256_cmpeq_epi8(bytes, backslash)));
    const auto mask = static_cast<std::uint32_t>(_mm256_movemask_epi8(found));
    if (mask != 0) return from + std::countr_zero(mask);
  }
  while (from != end && *from != '"' && *from != '\\' && static_cast<unsigned char>(*from) >= 0x20) ++from;
  return from;
}

}  // namespace waybill::upstream
