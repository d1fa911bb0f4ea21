// Codes of languages.
#pragma once

#include <string>
#include <string_view>

namespace waybill::config {

// Whether it is a code of ISO 639-1 ("de").
[[nodiscard]] bool is_language_code(std::string_view code);

// "; German is \"de\"" for what people write instead of the code ("german", "ger", "de-AT"), or empty.
[[nodiscard]] std::string language_suggestion(std::string_view written);

}  // namespace waybill::config
