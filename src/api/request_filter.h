// What the query of GET /v1/requests asks for.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "telemetry/waybill_book.h"

namespace waybill::api {

// Not moved: the filter points into it.
struct RequestFilter {
  std::string route;
  telemetry::WaybillFilter filter;
};

// kInvalidInput with the parameter that is wrong.
[[nodiscard]] Status read_request_filter(std::string_view query, RequestFilter& out);

}  // namespace waybill::api
