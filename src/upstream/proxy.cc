#include "upstream/proxy.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <span>

#include <fmt/format.h>

#include "base/base64.h"

namespace waybill::upstream {
namespace {

std::string_view environment(const char* name) noexcept {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// The lower-case names came first and are what most tools look at; HTTP_PROXY in capitals can be set from
// outside in a CGI program, which this is not.
std::string_view from_environment(bool tls) noexcept {
  for (const char* name :
       tls ? std::array{"https_proxy", "HTTPS_PROXY"} : std::array{"http_proxy", "HTTP_PROXY"}) {
    if (const std::string_view value = environment(name); !value.empty()) return value;
  }
  return {};
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

}  // namespace

bool is_excepted(std::string_view list, std::string_view host) {
  const std::string name = lower(host);
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view entry = list.substr(0, comma);
    list.remove_prefix(std::min(list.size(), comma + 1));
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    if (entry == "*") return true;
    const std::string suffix = lower(entry.starts_with('.') ? entry.substr(1) : entry);
    if (suffix.empty()) continue;
    if (name == suffix || name.ends_with("." + suffix)) return true;
  }
  return false;
}

Result<std::optional<Proxy>> proxy_for(std::string_view configured, const config::BaseUrl& url) {
  if (configured == "none") return std::nullopt;
  std::string_view text = configured;
  if (text.empty()) {
    std::string_view exceptions = environment("no_proxy");
    if (exceptions.empty()) exceptions = environment("NO_PROXY");
    if (url.is_local() || is_excepted(exceptions, url.host)) return std::nullopt;
    text = from_environment(url.tls);
  }
  if (text.empty()) return std::nullopt;
  Proxy proxy;
  std::string address(text);
  const std::size_t begin = address.find("://") == std::string::npos ? 0 : address.find("://") + 3;
  if (const std::size_t at = address.find('@', begin); at != std::string::npos) {
    proxy.authorization =
        "Basic " + base64(std::as_bytes(std::span(std::string_view(address).substr(begin, at - begin))));
    address.erase(begin, at + 1 - begin);
  }
  if (begin == 0) address.insert(0, "http://");
  Result<config::BaseUrl> parsed = config::parse_base_url(address);
  if (!parsed)
    return fail(ErrorCode::kInvalidInput, fmt::format("the proxy {} {}", address, parsed.error().message),
                "proxy");
  if (parsed->tls)
    return fail(ErrorCode::kUnsupported,
                "a proxy that is itself reached by https is not supported; write http://", "proxy");
  proxy.host = parsed->host;
  proxy.port = parsed->port;
  return proxy;
}

}  // namespace waybill::upstream
