// The JSON Schema of waybill.yaml, made of the same keys that the parser knows (describe.h).
#pragma once

#include <string>

namespace waybill::config {

// Draft 2020-12 (json-schema.org/draft/2020-12), with the descriptions and defaults that editors show. What a
// schema cannot say (two routes of one name, a rule for a route that is not there) only the parser refuses.
[[nodiscard]] std::string json_schema();

}  // namespace waybill::config
