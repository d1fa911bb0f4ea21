// Where a provider is: the URL that stands before the path of every call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace waybill::config {

struct BaseUrl {
  bool tls = false;  // https
  std::string host;  // a name, an IPv4 or an IPv6 address (without brackets)
  std::uint16_t port = 80;
  std::string path;  // "/v1"; empty for the root, and never with a slash at its end
  [[nodiscard]] bool is_local() const noexcept;  // this machine: "localhost", 127.0.0.0/8, ::1
};

// "https://api.openai.com/v1". kInvalidInput with what is wrong and the likely fix ("has no scheme; write
// https://api.openai.com/v1"), in which a password that stands in the URL is not repeated.
[[nodiscard]] Result<BaseUrl> parse_base_url(std::string_view url);

}  // namespace waybill::config
