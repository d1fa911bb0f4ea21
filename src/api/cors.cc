#include "api/cors.h"

#include <algorithm>

namespace waybill::api {

void add_cors_headers(const http::Request& request, const config::Cors& cors, http::Response& response) {
  if (cors.allow_origins.empty()) return;
  const std::string_view origin = request.header("origin");
  if (origin.empty()) return;
  const auto allowed = [&cors](std::string_view name) {
    return std::ranges::find(cors.allow_origins, name) != cors.allow_origins.end();
  };
  const bool any = allowed("*");
  if (!any && !allowed(origin)) return;
  response.add_header("Access-Control-Allow-Origin", any ? std::string_view("*") : origin);
  if (!any) response.add_header("Vary", "Origin");
  response.add_header("Access-Control-Expose-Headers", "x-request-id, x-waybill-request-id, Retry-After");
  if (request.method != http::Method::kOptions) return;
  response.add_header("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
  if (const std::string_view wanted = request.header("access-control-request-headers"); !wanted.empty()) {
    response.add_header("Access-Control-Allow-Headers", wanted);
  }
  response.add_header("Access-Control-Max-Age", "600");
}

}  // namespace waybill::api
