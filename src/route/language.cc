#include "route/language.h"

#include <array>
#include <cstdio>  // compact_lang_det.h names FILE without it
#include <utility>

#include <cld2/public/compact_lang_det.h>
#include <cld2/public/encodings.h>

namespace waybill::route {
namespace {

constexpr LanguageCode packed(char first, char second) noexcept {
  return static_cast<LanguageCode>(static_cast<unsigned char>(first) << 8 |
                                   static_cast<unsigned char>(second));
}

constexpr bool is_letter(char c) noexcept { return c >= 'a' && c <= 'z'; }
constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

LanguageCode language_code(std::string_view code) noexcept {
  if (code.size() != 2 || !is_letter(lower(code[0])) || !is_letter(lower(code[1]))) return 0;
  static constexpr std::array<std::pair<LanguageCode, LanguageCode>, 5> kSame = {{
      {packed('i', 'w'), packed('h', 'e')},
      {packed('j', 'w'), packed('j', 'v')},
      {packed('n', 'b'), packed('n', 'o')},
      {packed('n', 'n'), packed('n', 'o')},
      {packed('i', 'n'), packed('i', 'd')},
  }};
  const LanguageCode found = packed(lower(code[0]), lower(code[1]));
  for (const auto& [other, usual] : kSame) {
    if (found == other) return usual;
  }
  return found;
}

LanguageCode detect_language(std::string_view text) {
  const CLD2::CLDHints no_hints = {nullptr, nullptr, CLD2::UNKNOWN_ENCODING, CLD2::UNKNOWN_LANGUAGE};
  std::array<CLD2::Language, 3> languages{};
  std::array<int, 3> percent{};
  std::array<double, 3> scores{};
  int text_bytes = 0;
  bool reliable = false;
  int valid_bytes = 0;
  const CLD2::Language language = CLD2::ExtDetectLanguageSummaryCheckUTF8(
      text.data(), static_cast<int>(text.size()), /*is_plain_text=*/true, &no_hints, /*flags=*/0,
      languages.data(), percent.data(), scores.data(), nullptr, &text_bytes, &reliable, &valid_bytes);
  if (!reliable || language == CLD2::UNKNOWN_LANGUAGE) return 0;
  const std::string_view code = CLD2::LanguageCode(language);  // "de", "zh-Hant", "un", "xx-Latn"
  return code.starts_with("un") ? LanguageCode{0} : language_code(code.substr(0, code.find('-')));
}

}  // namespace waybill::route
