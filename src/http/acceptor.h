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

  Acceptor(EventLoop& loop, int listening_descriptor, OnConnection on_connection);
  ~Acceptor() { close(); }
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  void start();
  void close();  // the listening socket itself stays open

 private:
  void wait();
  void accept_waiting();
  void pause();

  boost::asio::posix::basic_stream_descriptor<boost::asio::io_context::executor_type> descriptor_;
  boost::asio::steady_timer pause_;
  OnConnection on_connection_;
};

// Answers 503 with Retry-After, as far as that needs no waiting, and closes. In TLS there is only the close.
void refuse_connection(int descriptor, bool plain);

}  // namespace waybill::http
