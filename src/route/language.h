// Which language a text is written in.
#pragma once

#include <cstdint>
#include <string_view>

namespace waybill::route {

// A two-letter code of ISO 639-1 as a number; 0: not known.
using LanguageCode = std::uint16_t;

// Of "de" or "DE"; codes that are one language by two names become one (nb is no, iw is he). 0 for anything
// else.
[[nodiscard]] LanguageCode language_code(std::string_view code) noexcept;

// The language of most of the text as Compact Language Detector 2 (github.com/CLD2Owners/cld2) sees it: about
// 80 languages, 20 microseconds for a short prompt. 0 when the text is too short or too mixed to tell. `text`
// must be valid UTF-8. Thread-safe.
[[nodiscard]] LanguageCode detect_language(std::string_view text);

}  // namespace waybill::route
