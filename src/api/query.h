// Queries: which parameters an endpoint takes, and how those that several share are read.
#pragma once

#include <cstddef>
#include <string_view>

#include "api/endpoint.h"
#include "base/result.h"

namespace waybill::api {

// kInvalidInput with the parameter that the endpoint does not take, or that is there twice: what is not
// understood must not be answered as if it had not been asked.
[[nodiscard]] Status check_query(const Endpoint& endpoint, std::string_view query);

// "limit=20", from 1 to 1000.
[[nodiscard]] Result<std::size_t> read_limit(std::string_view query, std::size_t otherwise);

}  // namespace waybill::api
