#include "http/acceptor.h"

#include <array>
#include <cerrno>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace waybill::http {
namespace {

constexpr int kMostAtOnce = 64;                         // then the connections that are there get their turn
constexpr auto kPause = std::chrono::milliseconds(50);  // after the system had no descriptor or memory left

std::string peer_address(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text.data(), text.size());
  } else if (address.ss_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text.data(),
                text.size());
  }
  return text.data();
}

}  // namespace

Acceptor::Acceptor(EventLoop& loop, int listening_descriptor, bool ours, OnConnection on_connection,
                   std::function<void()> on_shortage)
    : descriptor_(loop.context(), ::dup(listening_descriptor)),
      pause_(loop.context()),
      ours_(ours),
      on_connection_(std::move(on_connection)),
      on_shortage_(std::move(on_shortage)) {}

void Acceptor::start() { wait(); }

void Acceptor::close() {
  boost::system::error_code ignored;
  (void)descriptor_.close(ignored);
  pause_.cancel();
}

void Acceptor::wait() {
  descriptor_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                         [this](const boost::system::error_code& error) {
                           if (!error) accept_waiting();
                         });
}

bool Acceptor::accept_one() {
  for (;;) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    const int connection = ::accept4(descriptor_.native_handle(), reinterpret_cast<sockaddr*>(&address),
                                     &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection >= 0) {
      const int on = 1;
      ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on,
                   sizeof on);  // fails on a UNIX socket, which needs none
      on_connection_(connection, peer_address(address));
      return true;
    }
    const bool shortage = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (shortage || errno == EAGAIN || errno == EWOULDBLOCK) {
      short_of_descriptors_ = shortage;
      return false;
    }
    // Anything else was the fault of that one connection (ECONNABORTED and network errors, accept(2)).
  }
}

void Acceptor::accept_waiting() {
  for (int i = 0; i < kMostAtOnce; ++i) {
    if (accept_one()) continue;
    if (short_of_descriptors_) return pause();
    break;
  }
  wait();
}

void Acceptor::finish() {
  if (!descriptor_.is_open()) return;
  while (ours_ && accept_one()) {
  }
  close();
}

void Acceptor::pause() {
  on_shortage_();
  pause_.expires_after(kPause);
  pause_.async_wait([this](const boost::system::error_code& error) {
    if (!error) wait();
  });
}

void refuse_connection(int descriptor, bool plain) {
  if (plain) {
    const std::string body =
        R"({"error":{"message":"The server has as many connections as it takes (server.max_connections); try again.",)"
        R"("type":"server_error","param":null,"code":"too_many_connections"}})";
    const std::string answer =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: " +
        std::to_string(body.size()) + "\r\nRetry-After: 1\r\nConnection: close\r\n\r\n" + body;
    (void)!::send(descriptor, answer.data(), answer.size(), MSG_NOSIGNAL);
    ::shutdown(descriptor, SHUT_WR);
  }
}

void close_refused(int descriptor) {
  constexpr int kMostReads = 16;
  std::array<char, 16384> ignored;
  for (int i = 0; i < kMostReads; ++i) {
    if (::recv(descriptor, ignored.data(), ignored.size(), 0) <= 0) break;
  }
  ::close(descriptor);
}

}  // namespace waybill::http
