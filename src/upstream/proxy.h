// Which proxy leads to a provider: what the configuration says, else what the environment does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/base_url.h"

namespace waybill::upstream {

struct Proxy {
  std::string host;
  std::uint16_t port = 0;
  std::string authorization;  // "Basic ..."; empty: none
};

// `configured`: "http://user:password@host:port", "none", or empty: HTTPS_PROXY or HTTP_PROXY (and in lower
// case), unless NO_PROXY names the host. kInvalidInput without the password.
[[nodiscard]] Result<std::optional<Proxy>> proxy_for(std::string_view configured, const config::BaseUrl& url);

// Whether a list as NO_PROXY has it ("localhost, .example.com, 10.0.0.1, *") names the host.
[[nodiscard]] bool is_excepted(std::string_view list, std::string_view host);

}  // namespace waybill::upstream
