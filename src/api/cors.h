// Cross-origin requests from browsers (https://fetch.spec.whatwg.org/#http-cors-protocol).
#pragma once

#include "config/config.h"
#include "http/request.h"
#include "http/response.h"

namespace waybill::api {

// Nothing for a request without Origin, or from an origin that is not allowed.
void add_cors_headers(const http::Request& request, const config::Cors& cors, http::Response& response);

}  // namespace waybill::api
