// Cross-origin requests from browsers (https://fetch.spec.whatwg.org/#http-cors-protocol).
#pragma once

#include "config/config.h"
#include "http/request.h"
#include "http/response.h"

namespace waybill::api {

// Nothing for a request without Origin, or from an origin that is not allowed.
void add_cors_headers(const http::Request& request, const config::Cors& cors, http::Response& response);

// Whether a page of the request's origin may read answers, or none is named. For WebSockets, where browsers
// do not ask (RFC 6455 section 10.2). A page of this server's own may.
[[nodiscard]] bool is_allowed_origin(const http::Request& request, const config::Cors& cors);

}  // namespace waybill::api
