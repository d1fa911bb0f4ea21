#include "http/stream.h"

#include <algorithm>
#include <cerrno>
#include <climits>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

namespace waybill::http {
namespace {

namespace asio = boost::asio;
using Wait = asio::posix::descriptor_base::wait_type;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable_t<asio::io_context::executor_type>{});

}  // namespace

Stream::Stream(asio::io_context& context, int descriptor, ssl_st* tls)
    : descriptor_(context, descriptor), ssl_(tls) {}

Stream::~Stream() {
  close();
  if (ssl_ != nullptr) SSL_free(ssl_);
}

IoResult Stream::after(int result) {
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      return {IoState::kWantRead};
    case SSL_ERROR_WANT_WRITE:
      return {IoState::kWantWrite};
    case SSL_ERROR_ZERO_RETURN:
      return {IoState::kClosed};
    default:
      ERR_clear_error();
      return {IoState::kFailed};
  }
}

IoState Stream::handshake() {
  if (ssl_ == nullptr) return IoState::kDone;
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  return result == 1 ? IoState::kDone : after(result).state;
}

IoResult Stream::read(char* data, std::size_t size) {
  if (ssl_ != nullptr) {
    ERR_clear_error();
    const int result = SSL_read(ssl_, data, static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
    return result > 0 ? IoResult{IoState::kDone, static_cast<std::size_t>(result)} : after(result);
  }
  for (;;) {
    const ssize_t got = ::recv(descriptor_.native_handle(), data, size, 0);
    if (got > 0) return {IoState::kDone, static_cast<std::size_t>(got)};
    if (got == 0) return {IoState::kClosed};
    if (errno == EINTR) continue;
    return {errno == EAGAIN || errno == EWOULDBLOCK ? IoState::kWantRead : IoState::kFailed};
  }
}

IoResult Stream::write(const char* data, std::size_t size) {
  if (ssl_ != nullptr) {
    ERR_clear_error();
    const int result = SSL_write(ssl_, data, static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
    return result > 0 ? IoResult{IoState::kDone, static_cast<std::size_t>(result)} : after(result);
  }
  for (;;) {
    const ssize_t put = ::send(descriptor_.native_handle(), data, size, MSG_NOSIGNAL);
    if (put >= 0) return {IoState::kDone, static_cast<std::size_t>(put)};
    if (errno == EINTR) continue;
    return {errno == EAGAIN || errno == EWOULDBLOCK ? IoState::kWantWrite : IoState::kFailed};
  }
}

Task<bool> Stream::wait(IoState what) {
  const Wait wait = what == IoState::kWantWrite ? Wait::wait_write : Wait::wait_read;
  const auto [error] = co_await descriptor_.async_wait(wait, kAwait);
  co_return !error;
}

bool Stream::is_readable() const noexcept {
  pollfd look = {const_cast<Stream*>(this)->descriptor_.native_handle(), POLLIN, 0};
  return ::poll(&look, 1, 0) > 0 && (look.revents & POLLIN) != 0;
}

bool Stream::peer_has_closed() const noexcept {
  pollfd look = {const_cast<Stream*>(this)->descriptor_.native_handle(), POLLRDHUP, 0};
  return ::poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

bool Stream::finish_writing() {
  if (ssl_ != nullptr) {
    ERR_clear_error();
    if (SSL_is_init_finished(ssl_) == 1) SSL_shutdown(ssl_);
    ERR_clear_error();
  }
  return descriptor_.is_open() && ::shutdown(descriptor_.native_handle(), SHUT_WR) == 0;
}

void Stream::cancel() {
  boost::system::error_code ignored;
  (void)descriptor_.cancel(ignored);
}

int Stream::release() { return descriptor_.release(); }

void Stream::close() {
  if (!descriptor_.is_open()) return;
  if (ssl_ != nullptr) {
    ERR_clear_error();
    if (SSL_is_init_finished(ssl_) == 1) SSL_shutdown(ssl_);
    ERR_clear_error();
  }
  boost::system::error_code ignored;
  (void)descriptor_.close(ignored);
}

}  // namespace waybill::http
