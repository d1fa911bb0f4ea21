#include "jobs/webhook_address.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "config/base_url.h"
#include "http/request.h"

namespace waybill::jobs {
namespace {

namespace ip = boost::asio::ip;

constexpr std::size_t kMostUrlBytes = 2048;

struct Range4 {
  std::uint32_t address;
  unsigned bits;
  AddressKind kind;
};
constexpr std::uint32_t four(unsigned a, unsigned b, unsigned c, unsigned d) {
  return a << 24U | b << 16U | c << 8U | d;
}
// https://www.iana.org/assignments/iana-ipv4-special-registry; the first that fits.
constexpr auto kFours = std::to_array<Range4>({
    {four(100, 100, 100, 200), 32, AddressKind::kNever},  // metadata of Alibaba Cloud
    {four(168, 63, 129, 16), 32, AddressKind::kNever},  // metadata of Azure, on an address that looks public
    {four(0, 0, 0, 0), 8, AddressKind::kNever},         // this network: 0.0.0.0 is this machine
    {four(10, 0, 0, 0), 8, AddressKind::kPrivate},
    {four(100, 64, 0, 0), 10, AddressKind::kPrivate},  // shared by carriers (CGNAT)
    {four(127, 0, 0, 0), 8, AddressKind::kPrivate},
    {four(169, 254, 0, 0), 16, AddressKind::kNever},  // link-local, with the metadata of most clouds
    {four(172, 16, 0, 0), 12, AddressKind::kPrivate},
    {four(192, 0, 0, 0), 24, AddressKind::kNever},    // protocol assignments, with metadata of Oracle Cloud
    {four(192, 0, 2, 0), 24, AddressKind::kNever},    // documentation
    {four(192, 88, 99, 0), 24, AddressKind::kNever},  // 6to4 relays, deprecated
    {four(192, 168, 0, 0), 16, AddressKind::kPrivate},
    {four(198, 18, 0, 0), 15, AddressKind::kNever},    // benchmarks
    {four(198, 51, 100, 0), 24, AddressKind::kNever},  // documentation
    {four(203, 0, 113, 0), 24, AddressKind::kNever},   // documentation
    {four(224, 0, 0, 0), 3, AddressKind::kNever},      // multicast, reserved, broadcast
});

AddressKind kind_of_four(std::uint32_t address) noexcept {
  for (const Range4& range : kFours) {
    if (((address ^ range.address) >> (32 - range.bits)) == 0) return range.kind;
  }
  return AddressKind::kPublic;
}

using Bytes = ip::address_v6::bytes_type;

std::uint32_t four_at(const Bytes& bytes, std::size_t at) noexcept {
  return four(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]);
}

struct Range6 {
  std::array<std::uint8_t, 16> address;
  unsigned bits;
  AddressKind kind;
};
// https://www.iana.org/assignments/iana-ipv6-special-registry; the first that fits.
constexpr auto kSixes = std::to_array<Range6>({
    {{0xFD, 0x00, 0x0E, 0xC2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54}, 128, AddressKind::kNever},  // of AWS
    {{0xFD, 0x20, 0, 0xCE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54}, 128, AddressKind::kNever},  // of Google
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, AddressKind::kPrivate},               // loopback
    {{0xFC}, 7, AddressKind::kPrivate},                   // unique local
    {{0x20, 0x01}, 23, AddressKind::kNever},              // protocol assignments, Teredo
    {{0x20, 0x01, 0x0D, 0xB8}, 32, AddressKind::kNever},  // documentation
    {{0x3F, 0xFF}, 20, AddressKind::kNever},              // documentation
    {{0x20}, 3, AddressKind::kPublic},                    // all that is allocated
});

bool starts_with(const Bytes& bytes, std::span<const std::uint8_t> prefix, unsigned bits) noexcept {
  const std::size_t whole = bits / 8;
  if (!std::equal(prefix.begin(), prefix.begin() + static_cast<std::ptrdiff_t>(whole), bytes.begin()))
    return false;
  return bits % 8 == 0 || ((bytes[whole] ^ prefix[whole]) >> (8 - bits % 8)) == 0;
}

// The IPv4 address that packets to this one end up at.
std::optional<std::uint32_t> four_within(const Bytes& bytes) noexcept {
  constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  constexpr std::array<std::uint8_t, 12> kNat64 = {0, 0x64, 0xFF, 0x9B};
  constexpr std::array<std::uint8_t, 2> kSixToFour = {0x20, 0x02};
  if (starts_with(bytes, kMapped, 96) || starts_with(bytes, kNat64, 96)) return four_at(bytes, 12);
  if (starts_with(bytes, kSixToFour, 16)) return four_at(bytes, 2);
  return std::nullopt;
}

std::unexpected<Error> refused(ErrorCode code, std::string message) {
  return fail(code, std::move(message), "webhook");
}

}  // namespace

AddressKind kind_of(const ip::address& address) noexcept {
  if (address.is_v4()) return kind_of_four(address.to_v4().to_uint());
  const Bytes bytes = address.to_v6().to_bytes();
  if (const auto four = four_within(bytes)) return kind_of_four(*four);
  for (const Range6& range : kSixes) {
    if (starts_with(bytes, range.address, range.bits)) return range.kind;
  }
  return AddressKind::kNever;
}

bool may_connect(const ip::address& address, bool allow_private) noexcept {
  const AddressKind kind = kind_of(address);
  return kind == AddressKind::kPublic || (kind == AddressKind::kPrivate && allow_private);
}

Result<WebhookUrl> parse_webhook_url(std::string_view url) {
  const auto wrong = [](std::string what) { return fail(ErrorCode::kInvalidInput, std::move(what)); };
  if (url.size() > kMostUrlBytes) return wrong(fmt::format("is longer than {} bytes", kMostUrlBytes));
  const std::size_t scheme = url.find("://");
  const std::size_t end = url.find_first_of("/?#", scheme == std::string_view::npos ? 0 : scheme + 3);
  const Result<config::BaseUrl> base = config::parse_base_url(url.substr(0, end));
  if (!base) return std::unexpected(base.error());
  std::string_view rest = end == std::string_view::npos ? std::string_view() : url.substr(end);
  if (rest.find('#') != std::string_view::npos)
    return wrong("has a fragment; leave out what begins with the \"#\"");
  if (!std::ranges::all_of(rest, [](char c) { return c > ' ' && c < 0x7F && c != '\\' && c != '"'; }))
    return wrong("has characters that no URL has; write them with %XX");
  WebhookUrl out{.tls = base->tls, .host = base->host, .port = base->port, .target = {}};
  std::ranges::transform(out.host, out.host.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  if (!rest.starts_with('/')) out.target = "/";
  out.target += rest;
  return out;
}

bool is_listed(const std::vector<std::string>& names, std::string_view host) {
  if (names.empty()) return true;
  if (host.ends_with('.')) host.remove_suffix(1);  // the root
  return std::ranges::any_of(names, [host](std::string_view name) {
    if (!name.starts_with("*.")) return http::equal_names(name, host);
    const std::string_view below = name.substr(1);
    return host.size() > below.size() && http::equal_names(host.substr(host.size() - below.size()), below);
  });
}

Result<WebhookUrl> check_webhook_url(std::string_view url, const config::JobWebhooks& settings) {
  if (settings.secrets.empty()) {
    return refused(ErrorCode::kInvalidInput,
                   "This server signs no webhooks; set jobs.webhooks.secrets, or leave the webhook out.");
  }
  Result<WebhookUrl> parsed = parse_webhook_url(url);
  if (!parsed)
    return refused(ErrorCode::kInvalidInput, fmt::format("The webhook's URL {}.", parsed.error().message));
  if (!parsed->tls && !settings.allow_http) {
    return refused(ErrorCode::kPermissionDenied,
                   "Webhooks go to https:// only; http:// has to be allowed (jobs.webhooks.allow_http).");
  }
  if (!is_listed(settings.allow_hosts, parsed->host)) {
    return refused(ErrorCode::kPermissionDenied,
                   fmt::format("The host {} is not in jobs.webhooks.allow_hosts.", parsed->host));
  }
  boost::system::error_code no_address;
  const auto address = ip::make_address(parsed->host, no_address);
  if (!no_address && !may_connect(address, settings.allow_private)) {
    return refused(ErrorCode::kPermissionDenied,
                   fmt::format("{} is not an address that webhooks may go to{}.", parsed->host,
                               kind_of(address) == AddressKind::kPrivate
                                   ? " (jobs.webhooks.allow_private allows those that are not public)"
                                   : ""));
  }
  return parsed;
}

}  // namespace waybill::jobs
