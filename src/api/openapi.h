// The API's description, as it is served.
#pragma once

#include <string>
#include <string_view>

namespace waybill::api {

[[nodiscard]] std::string_view openapi_yaml();    // src/api/openapi.yaml
[[nodiscard]] const std::string& openapi_page();  // made from it once, for people

}  // namespace waybill::api
