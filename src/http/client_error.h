// What can go wrong on the way to another server, and where.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace waybill::http {

// What a call to another server goes through.
enum class ClientStage : std::uint8_t { kResolve, kConnect, kTls, kSend, kHeaders, kBody };
[[nodiscard]] std::string_view to_string(ClientStage stage) noexcept;  // "resolve", "connect", ...

enum class ClientFault : std::uint8_t {
  kTimeout,    // the stage's deadline passed
  kRefused,    // no such name, nobody listens, or TLS could not be agreed on
  kClosed,     // the other side ended the connection too early
  kMalformed,  // what came is no HTTP, or larger than allowed
  kCancelled,  // by cancel()
};

struct ClientError {
  ClientStage stage = ClientStage::kConnect;
  ClientFault fault = ClientFault::kRefused;
  std::string message;  // for people: "connection refused"
  bool stale = false;   // a kept connection that ended before it gave a byte: may be tried on a fresh one
};

template <class T>
using ClientResult = std::expected<T, ClientError>;

}  // namespace waybill::http
