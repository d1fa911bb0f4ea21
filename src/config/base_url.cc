#include "config/base_url.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "config/server_config.h"

namespace waybill::config {
namespace {

std::unexpected<Error> wrong(std::string message) {
  return fail(ErrorCode::kInvalidInput, std::move(message));
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_';
}

bool is_six_character(char c) {
  return (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || (c >= '0' && c <= '9') || c == ':' || c == '.';
}

// The authority without its user: host and port into `out`.
Status read_authority(std::string_view authority, BaseUrl& out) {
  const bool brackets = authority.starts_with('[');
  const std::size_t end = brackets ? authority.find(']') : std::min(authority.find(':'), authority.size());
  if (end == std::string_view::npos) return wrong("has no end to the brackets of its host");
  const std::string_view host = authority.substr(brackets ? 1 : 0, end - (brackets ? 1 : 0));
  std::string_view rest = authority.substr(brackets ? end + 1 : end);
  if (!brackets && std::ranges::count(authority, ':') > 1)
    return wrong("has colons in its host; write an IPv6 address in brackets ([::1])");
  if (host.empty()) return wrong("has no host; write https://HOST/v1");
  if (!std::ranges::all_of(host, brackets ? is_six_character : is_name_character) ||
      (brackets && host.find(':') == std::string_view::npos)) {
    return wrong("has a host with characters that no host has");
  }
  out.host = host;
  out.port = out.tls ? 443 : 80;
  if (rest.empty()) return {};
  const bool colon = rest.starts_with(':');
  if (colon) rest.remove_prefix(1);
  const auto [last, error] = std::from_chars(rest.data(), rest.data() + rest.size(), out.port);
  if (!colon || error != std::errc() || last != rest.data() + rest.size() || out.port == 0)
    return wrong("has a port that is not a number from 1 to 65535");
  return {};
}

}  // namespace

bool BaseUrl::is_local() const noexcept {
  ListenAddress address;
  address.host = host;
  return address.is_local();
}

Result<BaseUrl> parse_base_url(std::string_view url) {
  const std::size_t scheme_end = url.find("://");
  const std::size_t start = scheme_end == std::string_view::npos ? 0 : scheme_end + 3;
  const std::string_view authority =
      url.substr(start, std::min(url.find_first_of("/?#", start), url.size()) - start);
  if (authority.find('@') != std::string_view::npos) {
    return wrong(
        "has a user name or password in it, which everybody who reads the configuration would see; remove "
        "it");
  }
  std::string scheme(url.substr(0, scheme_end));  // RFC 3986, 3.1: in either case
  std::ranges::transform(scheme, scheme.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  BaseUrl out;
  out.tls = scheme == "https";
  if (scheme_end == std::string_view::npos) {
    if (const Status read = read_authority(authority, out); !read)
      return wrong("is no URL; write https://HOST/v1");
    return wrong(fmt::format("has no scheme; write {}://{}", out.is_local() ? "http" : "https", url));
  }
  if (scheme != "http" && scheme != "https") {
    return wrong(scheme == "ws" || scheme == "wss"
                     ? "is the URL of a WebSocket; write https:// or http://"
                     : "has a scheme that is not spoken here; write https:// or http://");
  }
  if (const Status read = read_authority(authority, out); !read) return std::unexpected(read.error());
  if (const std::size_t query = url.find_first_of("?#"); query != std::string_view::npos)
    return wrong(fmt::format("has a {}; leave out what begins with the \"{}\"",
                             url[query] == '?' ? "query" : "fragment", url[query]));
  std::string_view path = url.substr(start + authority.size());
  if (!std::ranges::all_of(path, [](char c) { return c > ' ' && c < 0x7F && c != '\\' && c != '"'; }))
    return wrong("has characters in its path that no URL has; write them with %XX, or correct them");
  while (path.ends_with('/')) path.remove_suffix(1);
  out.path = path;
  return out;
}

}  // namespace waybill::config
