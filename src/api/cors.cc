#include "api/cors.h"

#include <algorithm>

#include "api/endpoint.h"

namespace waybill::api {

void add_cors_headers(const http::Request& request, const config::Cors& cors, http::Response& response) {
  if (cors.allow_origins.empty()) return;
  // Said to all: a cache must not give one origin the answer of another.
  const bool any = std::ranges::find(cors.allow_origins, "*") != cors.allow_origins.end();
  if (!any) response.add_header("Vary", "Origin");
  const std::string_view origin = request.header("origin");
  if (origin.empty()) return;
  if (!any && std::ranges::find(cors.allow_origins, origin) == cors.allow_origins.end()) return;
  response.add_header("Access-Control-Allow-Origin", any ? std::string_view("*") : origin);
  // All of them: which model answered, what it cost, how much of a limit is left.
  response.add_header("Access-Control-Expose-Headers", "*");
  if (request.method != http::Method::kOptions) return;
  response.add_header("Access-Control-Allow-Methods", allowed_methods(request.path));
  if (const std::string_view wanted = request.header("access-control-request-headers"); !wanted.empty()) {
    response.add_header("Access-Control-Allow-Headers", wanted);
  }
  response.add_header("Access-Control-Max-Age", "600");
}

bool is_allowed_origin(const http::Request& request, const config::Cors& cors) {
  const std::string_view origin = request.header("origin");
  if (origin.empty()) return true;
  const std::size_t scheme = origin.find("://");
  if (scheme != std::string_view::npos &&
      http::equal_names(origin.substr(scheme + 3), request.header("host")))
    return true;
  return std::ranges::any_of(cors.allow_origins,
                             [origin](std::string_view each) { return each == "*" || each == origin; });
}

}  // namespace waybill::api
