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
  // `ours`: nobody else listens on the same socket, as systemd does.
  ListeningSocket(int descriptor, std::string address, std::string unlink_path, bool ours = true)
      : descriptor_(descriptor),
        address_(std::move(address)),
        unlink_path_(std::move(unlink_path)),
        ours_(ours) {}
  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();  // closes; removes the file of a UNIX socket

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] const std::string& address() const noexcept {
    return address_;
  }  // as bound: "127.0.0.1:41234"

  // From then on no connection is begun; those that wait can still be accepted. Does nothing to a socket that
  // another program holds too.
  void refuse_new();
  [[nodiscard]] bool ours() const noexcept { return ours_; }

 private:
  int descriptor_;
  std::string address_, unlink_path_;
  bool ours_;
};

// Binds and listens `copies` times (SO_REUSEPORT, one for each event loop); where a socket cannot be bound
// more than once (UNIX, systemd), there is one, which the loops share. A host name is looked up, which may
// block. The error says the address and what to do ("already in use").
[[nodiscard]] Result<std::vector<ListeningSocket>> listen_on(const config::ListenAddress& address,
                                                             unsigned copies);

}  // namespace waybill::http
