// Text put into HTML.
#pragma once

#include <string>
#include <string_view>

namespace waybill {

// For element content and for attributes in double quotes; control characters become spaces.
[[nodiscard]] std::string escape_html(std::string_view text);

}  // namespace waybill
