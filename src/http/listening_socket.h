// Sockets that wait for connections.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "config/server_config.h"

namespace waybill::http {

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
[[nodiscard]] Result<std::vector<ListeningSocket>> listen_on(const config::ListenAddress& address,
                                                             unsigned copies);

}  // namespace waybill::http
