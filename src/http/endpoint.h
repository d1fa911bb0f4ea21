// Where the server listens, from the words of the configuration.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace waybill::http {

// "127.0.0.1:8000", "[::1]:8000", "localhost:8000", ":8000" (every address), "unix:/run/waybill.sock", or
// "systemd" (the sockets that systemd hands over, sd_listen_fds(3)).
struct Endpoint {
  enum class Kind { kTcp, kUnix, kSystemd } kind = Kind::kTcp;
  std::string host;  // kTcp; empty: every address
  unsigned short port = 0;
  std::string path;  // kUnix

  [[nodiscard]] std::string text() const;
  // Only this machine reaches it. What systemd hands over is not looked into: false.
  [[nodiscard]] bool is_local() const;
};

[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view text);

// A listening, non-blocking socket, closed by its owner.
class ListeningSocket {
 public:
  ListeningSocket(int descriptor, std::string address, std::string unlink_path)
      : descriptor_(descriptor), address_(std::move(address)), unlink_path_(std::move(unlink_path)) {}
  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();  // closes; removes the file of a UNIX socket

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] const std::string& address() const noexcept {
    return address_;
  }  // as bound: "127.0.0.1:41234"

 private:
  int descriptor_;
  std::string address_, unlink_path_;
};

// Binds and listens `copies` times (SO_REUSEPORT, one for each event loop); where a socket cannot be bound
// more than once (UNIX, systemd), there is one, which the loops share. A host name is looked up, which may
// block. The error says the address and what to do ("already in use").
[[nodiscard]] Result<std::vector<ListeningSocket>> listen_on(const Endpoint& endpoint, unsigned copies);

}  // namespace waybill::http
