#include "upstream/error_body.h"

#include <fmt/format.h>

#include "base/json_writer.h"

namespace waybill::upstream {
namespace {

std::string_view type_of(unsigned status) noexcept {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

}  // namespace

std::string error_body(unsigned status, std::string_view message, std::string_view param,
                       std::string_view code) {
  std::string body;
  JsonWriter json(body);
  json.begin_object().key("error").begin_object().key("message").string(message);
  json.key("type").string(type_of(status)).key("param");
  if (param.empty()) {
    json.null();
  } else {
    json.string(param);
  }
  json.key("code").string(code).end_object().end_object();
  return body;
}

std::string error_body(unsigned status, std::string_view message) {
  return error_body(status, message, {}, fmt::format("status_{}", status));
}

}  // namespace waybill::upstream
