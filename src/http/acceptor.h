// Takes connections from a listening socket on one event loop.
#pragma once

#include <functional>
#include <string>

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "http/event_loop.h"

namespace waybill::http {

// Used by the loop's thread only, but for the constructor and start() before the loop runs.
class Acceptor {
 public:
  // The descriptor is non-blocking, as the one handed over. `address` is empty for a UNIX socket.
  using OnConnection = std::function<void(int descriptor, std::string address)>;

  // `ours`: connections that wait are not another program's to take. `on_shortage` is called each time when
  // the system has no descriptor or memory for a connection that waits.
  Acceptor(EventLoop& loop, int listening_descriptor, bool ours, OnConnection on_connection,
           std::function<void()> on_shortage);
  ~Acceptor() { close(); }
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  void start();
  void finish();  // takes what waits to be accepted, where it is ours, and closes
  void close();   // the listening socket itself stays open

 private:
  void wait();
  void accept_waiting();
  [[nodiscard]] bool accept_one();
  void pause();

  boost::asio::posix::basic_stream_descriptor<boost::asio::io_context::executor_type> descriptor_;
  boost::asio::steady_timer pause_;
  const bool ours_;
  OnConnection on_connection_;
  std::function<void()> on_shortage_;
  bool short_of_descriptors_ = false;  // said by accept_one()
};

// Answers 503 with Retry-After, as far as that needs no waiting, and closes its own side. In TLS nothing can
// be said before the handshake.
void refuse_connection(int descriptor, bool plain);
// Reads what the client has sent, so that the close is no reset that takes the answer with it, and closes.
void close_refused(int descriptor);

}  // namespace waybill::http
