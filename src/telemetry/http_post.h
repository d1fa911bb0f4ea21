// One POST to a plain HTTP server, on the calling thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace waybill::telemetry {

struct HttpTarget {
  std::string host;  // a name or an address, IPv6 without brackets
  std::string port = "80";
  std::string path = "/";
};

// "http://host:4318/v1/traces". kUnsupported for other schemes, kInvalidInput for what is no address.
[[nodiscard]] Result<HttpTarget> parse_http_target(std::string_view url);

struct HttpAnswer {
  unsigned status = 0;
  std::string retry_after;  // the header, if there was one
  std::string body;
};

// Fails with kIo (nobody answers, or not in HTTP) and kDeadlineExceeded (not within `timeout`).
[[nodiscard]] Result<HttpAnswer> http_post(const HttpTarget& target,
                                           const std::vector<std::pair<std::string, std::string>>& headers,
                                           std::string body, Duration timeout);

}  // namespace waybill::telemetry
