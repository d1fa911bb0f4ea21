// Errors in the shape that clients of OpenAI's API read.
#pragma once

#include <string>
#include <string_view>

namespace waybill::upstream {

// {"error": {"message", "type", "param", "code"}}; `param`, when empty, is null. The type follows from the
// status of HTTP.
[[nodiscard]] std::string error_body(unsigned status, std::string_view message, std::string_view param,
                                     std::string_view code);
// Of a refusal that says no more than this.
[[nodiscard]] std::string error_body(unsigned status, std::string_view message);

}  // namespace waybill::upstream
