#include "config/server_checks.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace waybill::config {
namespace {

class ServerChecker : CheckContext {
 public:
  explicit ServerChecker(const CheckContext& context) : CheckContext(context) {}

  void check_all() {
    check_keys();
    check_listen("server.listen", config_.server.listen);
    check_listen("server.admin_listen", config_.server.admin_listen);
    check_same_address();
    check_exposure();
    check_body_sizes();
    check_tls();
    check_admission();
    check_origins();
    check_traces();
  }

 private:
  void check_keys() {
    for (std::size_t i = 0; i < config_.keys.size(); ++i) {
      const ApiKey& key = config_.keys[i];
      const std::string path = fmt::format("keys[{}]", i);
      const int sources =
          (key.sha256.empty() ? 0 : 1) + (key.env.empty() ? 0 : 1) + (key.file.empty() ? 0 : 1);
      const bool told = is_wrong(path + ".sha256") || is_wrong(path + ".env") || is_wrong(path + ".file");
      if (sources != 1 && !told) {
        error(key.position, path,
              fmt::format(
                  "{} must have one of sha256, env and file{}", path,
                  sources == 0 ? "; add where its key comes from" : ", not several; remove the others"));
      }
      for (std::size_t j = 0; j < i; ++j) {
        const ApiKey& before = config_.keys[j];
        const std::string at = before.position.text();
        if (!key.name.empty() && key.name == before.name) {
          error(key.position, path + ".name",
                fmt::format("the key \"{}\" is there twice (first at {}); rename one", key.name, at));
        }
        const bool same = (!key.sha256.empty() && key.sha256 == before.sha256) ||
                          (!key.env.empty() && key.env == before.env) ||
                          (!key.file.empty() && key.file == before.file);
        if (same) {
          error(key.position, path,
                fmt::format("{} is the same key as \"{}\" at {}; remove one", path, before.name, at));
        }
      }
    }
  }

  void check_listen(const std::string& key, const std::vector<ListenAddress>& addresses) {
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const bool again = std::find(addresses.begin(), addresses.begin() + static_cast<std::ptrdiff_t>(i),
                                   addresses[i]) != addresses.begin() + static_cast<std::ptrdiff_t>(i);
      if (again && addresses[i].port == 0 && addresses[i].kind == ListenAddress::Kind::kTcp) continue;
      if (again)
        error(line_of(key), key, fmt::format("{} names {} twice; remove one", key, addresses[i].text()));
    }
  }

  void check_same_address() {
    const Server& server = config_.server;
    for (const ListenAddress& address : server.admin_listen) {
      if (address.kind == ListenAddress::Kind::kTcp && address.port == 0) continue;
      if (std::ranges::find(server.listen, address) == server.listen.end()) continue;
      error(
          line_of("server.admin_listen"), "server.admin_listen",
          fmt::format(
              "server.admin_listen names {}, which server.listen has too; give it an address of its own, or "
              "leave it out: the admin endpoints are then on listen, for admin keys",
              address.text()));
    }
  }

  void check_exposure() {
    const Server& server = config_.server;
    if (!server.insecure && config_.keys.empty()) refuse_exposed("server.listen", server.listen, "keys");
    const bool admin_key = std::ranges::any_of(config_.keys, &ApiKey::admin);
    if (!server.insecure && !admin_key && !is_wrong("keys"))
      refuse_exposed("server.admin_listen", server.admin_listen, "a key with admin: true");
    if (!config_.keys.empty() && !admin_key && server.admin_listen.empty()) {
      warn("keys",
           "none of the keys has admin: true, so that nobody can use the admin endpoints; add it to one, or "
           "give them an address of their own with server.admin_listen");
    }
  }

  void check_body_sizes() {
    const Server& server = config_.server;
    if (server.max_total_body_bytes >= server.max_body_bytes) return;
    const std::string key = "server.max_total_body_size";
    error(
        line_of(key, line_of("server.max_body_size")), key,
        fmt::format("server.max_total_body_size is less than server.max_body_size ({} and {} bytes): a body "
                    "of the largest size could never be read; raise the one or lower the other",
                    server.max_total_body_bytes, server.max_body_bytes));
  }

  void refuse_exposed(const std::string& key, const std::vector<ListenAddress>& addresses,
                      std::string_view missing) {
    for (const ListenAddress& address : addresses) {
      if (address.is_local()) continue;
      error(
          line_of(key), key,
          fmt::format(
              "{} names {}, which {} be reached from other machines, and there are no keys{}; add {}, listen "
              "on 127.0.0.1, or say server.insecure: true",
              key, address.text(), address.kind == ListenAddress::Kind::kSystemd ? "may" : "can",
              missing == "keys" ? "" : " for it", missing));
      return;
    }
  }

  void check_tls() {
    const Tls& tls = config_.server.tls;
    if (tls.certificate.empty() == tls.private_key.empty()) return;
    const bool told = is_wrong("server.tls.certificate") || is_wrong("server.tls.private_key");
    if (told) return;
    const std::string_view there = tls.certificate.empty() ? "private_key" : "certificate";
    const std::string_view missing = tls.certificate.empty() ? "certificate" : "private_key";
    error(line_of("server.tls"), "server.tls",
          fmt::format("server.tls has a {0} and no {1}; add {1}, or remove {0}", there, missing));
  }

  void check_admission() {
    const Admission& admission = config_.admission;
    if (admission.deadline <= admission.max_deadline) return;
    const std::string key =
        lines_.contains("admission.deadline") ? "admission.deadline" : "admission.max_deadline";
    error(line_of(key), key,
          "admission.deadline is longer than admission.max_deadline; raise one or lower the other");
  }

  void check_origins() {
    constexpr std::string_view kKey = "server.cors.allow_origins";
    for (const std::string& origin : config_.server.cors.allow_origins) {
      const std::size_t scheme = origin.find("://");
      const auto foreign = [](char c) { return c <= ' ' || c == 0x7F || c < 0; };  // it goes into a header
      const bool whole = scheme != std::string::npos && scheme != 0 && origin.size() > scheme + 3 &&
                         origin.find_first_of("/?#*", scheme + 3) == std::string::npos &&
                         std::ranges::none_of(origin, foreign);
      if (origin == "*" || origin == "null" || whole) continue;
      error(line_of(kKey), std::string(kKey),
            fmt::format("{}: \"{}\" is not an origin; write scheme://host[:port] without a path, or \"*\"",
                        kKey, origin));
    }
  }

  // A collector's password would be printed by `config show`.
  void check_traces() {
    constexpr std::string_view kKey = "telemetry.traces.endpoint";
    std::string& endpoint = config_.telemetry.traces.endpoint;
    if (endpoint.empty()) return;
    const bool http = endpoint.starts_with("http://") || endpoint.starts_with("https://");
    const std::size_t host = endpoint.find("://") + 3;
    const std::string authority =
        http ? endpoint.substr(host, endpoint.find_first_of("/?#", host) - host) : "";
    if (authority.find('@') != std::string::npos) {
      error(
          line_of(kKey), std::string(kKey),
          fmt::format(
              "{} has a user name or password in it, which everybody who reads the configuration would see; "
              "remove it and let a local collector log in",
              kKey));
      endpoint.clear();
    } else if (!http || authority.empty()) {
      error(line_of(kKey), std::string(kKey),
            fmt::format("{} must be the URL of an OTLP/HTTP collector; write http://localhost:4318", kKey));
    }
  }
};

}  // namespace

void check_server(const CheckContext& context) { ServerChecker(context).check_all(); }

}  // namespace waybill::config
