// Where webhooks may go. Whoever submits a job chooses the address that this server will call: without rules
// it would call what only the server can reach.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/ip/address.hpp>

#include "base/result.h"
#include "config/jobs_config.h"

namespace waybill::jobs {

enum class AddressKind : std::uint8_t {
  kPublic,   // on the internet
  kPrivate,  // this machine or its networks: 127/8, 10/8, 172.16/12, 192.168/16, 100.64/10, ::1, fc00::/7
  kNever,    // nobody's receiver: link-local, the metadata services of clouds, multicast, broadcast,
             // unspecified, reserved
};
// By the IANA special-purpose registries. An IPv6 address that leads to an IPv4 one (mapped, 6to4, NAT64) is
// what that is.
[[nodiscard]] AddressKind kind_of(const boost::asio::ip::address& address) noexcept;

// Of an address that a name was resolved to, right before it is connected to. Private ones: where they are
// allowed.
[[nodiscard]] bool may_connect(const boost::asio::ip::address& address, bool allow_private) noexcept;

struct WebhookUrl {
  bool tls = true;
  std::string host;  // a name in lower case, or an address, IPv6 without brackets
  std::uint16_t port = 443;
  std::string target;  // path and query: "/hooks?tenant=7"
};

// kInvalidInput with what is wrong, to stand after what it is of ("The webhook's URL "): "has no scheme;
// ...".
[[nodiscard]] Result<WebhookUrl> parse_webhook_url(std::string_view url);

// What can be said before a name is resolved: webhooks can be signed, it is a URL, its scheme, its host and,
// where the host is an address, that one are allowed. kInvalidInput or kPermissionDenied with a whole
// sentence.
[[nodiscard]] Result<WebhookUrl> check_webhook_url(std::string_view url, const config::JobWebhooks& settings);

// Whether a list of names, "*.example.com" for all below one, has the host. An empty list has all.
[[nodiscard]] bool is_listed(const std::vector<std::string>& names, std::string_view host);

}  // namespace waybill::jobs
