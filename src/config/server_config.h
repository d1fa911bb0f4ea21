// The typed form of what only the server reads in waybill.yaml: server, keys, admission, telemetry.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "config/position.h"
#include "config/upstream_config.h"

namespace waybill::config {

// Where the server listens. Written "127.0.0.1:8000", "[::1]:8000", "unix:/run/waybill.sock" or "systemd"
// (the sockets that a systemd .socket unit hands over).
struct ListenAddress {
  enum class Kind : std::uint8_t { kTcp, kUnix, kSystemd };

  Kind kind = Kind::kTcp;
  std::string host;            // kTcp: a name, an IPv4 or an IPv6 address (without brackets)
  std::uint16_t port = 0;      // kTcp; 0: one that is free
  std::filesystem::path path;  // kUnix

  // Cannot be reached from another machine: a UNIX socket, "localhost", 127.0.0.0/8, ::1. Of systemd's
  // sockets that is not known.
  [[nodiscard]] bool is_local() const noexcept;
  [[nodiscard]] std::string text() const;  // as it is written

  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};

// kInvalidInput with what is wrong ("has no port; write 127.0.0.1:8000"). A relative path stays relative.
[[nodiscard]] Result<ListenAddress> parse_listen_address(std::string_view text);

struct Tls {
  std::filesystem::path certificate, private_key;  // PEM; both or neither
  [[nodiscard]] bool enabled() const noexcept { return !certificate.empty(); }
};

struct Cors {
  std::vector<std::string>
      allow_origins;  // "https://app.example.com", or "*" for all; empty: no cross-origin calls
};

struct Server {
  std::vector<ListenAddress> listen = {
      {.kind = ListenAddress::Kind::kTcp, .host = "127.0.0.1", .port = 8000, .path = {}}};
  // Where /metrics and the other admin endpoints are. Empty: on `listen`, for admin keys only; for everybody
  // when there are no keys and all of `listen` is local.
  std::vector<ListenAddress> admin_listen;
  unsigned io_threads = 0;       // 0 ("auto"): one per core
  std::size_t busy_poll_us = 0;  // how long a loop with one call at a time looks for events before it sleeps
  bool insecure = false;         // listen beyond this machine without keys
  Tls tls;
  Duration drain_timeout = std::chrono::seconds(30);
  std::size_t max_connections = 10'000;
  std::size_t max_header_bytes = 16U << 10;
  std::size_t max_body_bytes = 10U << 20;
  std::size_t max_total_body_bytes = 1U << 30;  // of all requests; small ones are not counted
  Duration header_timeout =
      std::chrono::seconds(10);  // from the first byte of a request to the end of its header
  Duration body_timeout = std::chrono::seconds(30);   // without a byte of the body
  Duration idle_timeout = std::chrono::seconds(75);   // between requests
  Duration write_timeout = std::chrono::seconds(30);  // without a byte taken by the client
  Cors cors;
  std::size_t max_inputs = 2048;  // of one request
};

// Who may call. The key itself is never in the configuration: its SHA-256 is, or where to find it.
struct ApiKey {
  std::string name;            // what logs and metrics call the caller
  std::string sha256;          // 64 lower-case hexadecimal digits, or
  std::string env;             // an environment variable, or
  std::filesystem::path file;  // a file, whose first line is the key. Exactly one of the three
  bool admin = false;          // may use the admin endpoints
  CallerLimits limits;
  std::vector<std::string> tags;  // for reports; nothing is decided by them
  Position position;
};

struct Admission {
  Duration deadline = std::chrono::seconds(30);      // of a request that names none
  Duration max_deadline = std::chrono::minutes(10);  // a longer one is cut to this
  Duration max_wait = std::chrono::milliseconds(
      250);  // predicted; what would wait longer is decided by the static tier, or refused
  unsigned max_queue_tokens = 0;  // 0 ("auto"): 65,536
};

enum class LogFormat : std::uint8_t { kAuto, kJson, kText };  // auto: text on a terminal
enum class LogLevel : std::uint8_t { kTrace, kDebug, kInfo, kWarn, kError };

struct Waybills {
  std::size_t keep = 20'000;
  std::size_t max_bytes = 32U << 20;
  std::filesystem::path file;  // JSON lines; empty: none
  std::size_t rotate_bytes = 64U << 20;
  std::size_t rotate_keep = 4;  // files besides the one that is written
};

struct Log {
  LogFormat format = LogFormat::kAuto;
  LogLevel level = LogLevel::kInfo;
  std::size_t healthy_per_second = 10;  // of requests that went well; the others are always logged
};

struct Traces {
  std::string endpoint;  // OTLP/HTTP: "http://localhost:4318"; empty: off
  double sample_ratio = 1;
  std::string service_name = "waybill";
  std::size_t max_queue = 2048;  // spans that wait for export
};

struct Telemetry {
  Waybills waybills;
  Log log;
  Traces traces;
};

}  // namespace waybill::config
