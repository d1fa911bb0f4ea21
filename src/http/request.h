// One HTTP request as a handler sees it: read whole, bounded, its bytes owned.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace waybill::http {

enum class Method : std::uint8_t { kGet, kHead, kPost, kPut, kPatch, kDelete, kOptions, kOther };

[[nodiscard]] std::string_view to_string(Method method) noexcept;  // "GET"; kOther: "another method"

struct Header {
  std::string_view name, value;  // as they came; the value without white space around it
};

// Reused for all requests of a connection, so that its buffers grow once. The views point into `head`.
struct Request {
  Method method = Method::kOther;
  std::string_view target;  // "/v1/requests?limit=10"
  std::string_view path;    // "/v1/requests"
  std::string_view query;   // "limit=10"; still percent-encoded
  int minor_version = 1;    // of HTTP/1
  bool keep_alive = true;   // what the client wants
  std::vector<Header> headers;
  std::string body;      // chunks put together
  TimePoint started{};   // its first byte was here
  TimePoint received{};  // its last byte was here

  std::string head;  // the bytes that the views above point into

  // The first header of the name (case does not matter), or an empty view.
  [[nodiscard]] std::string_view header(std::string_view name) const noexcept;
  void clear();  // keeps the memory, unless it has become large
};

// ASCII case folding only, as HTTP names are compared.
[[nodiscard]] bool equal_names(std::string_view a, std::string_view b) noexcept;

// A piece of a path, percent-decoded; what is no valid escape stays as it is.
[[nodiscard]] std::string percent_decoded(std::string_view text);

// Takes the next parameter off the front of a query string, percent-decoded; a "+" is a space. False: there
// is none left. Empty ones ("a=1&&b=2") are skipped.
[[nodiscard]] bool next_parameter(std::string_view& query, std::string& name, std::string& value);

// The value of one parameter, the first of its name; false when it is not there.
[[nodiscard]] bool query_parameter(std::string_view query, std::string_view name, std::string& value);

}  // namespace waybill::http
