// JSON from outside, made acceptable to a strict parser.
#pragma once

#include <string>
#include <string_view>

namespace waybill {

// The text with U+FFFD for what cannot be decoded: invalid UTF-8, and \u escapes that are one half of a
// surrogate pair (Python writes them, RFC 8259 section 8.2 leaves their meaning open). Anything else stays as
// it is.
[[nodiscard]] std::string decodable_json(std::string_view text);

}  // namespace waybill
