#include "http/stream.h"

#include <algorithm>
#include <cerrno>
#include <climits>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace waybill::http {
Stream::Stream(Reactor& reactor, int descriptor, ssl_st* tls)
    : descriptor_(descriptor), ssl_(tls), readiness_(reactor) {}

Stream::~Stream() {
  close();
  if (ssl_ != nullptr) SSL_free(ssl_);
}

IoState Stream::blocked(IoState what) noexcept {
  readiness_.set_blocked(way(what));
  return what;
}

IoResult Stream::after(int result) {
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      return {blocked(IoState::kWantRead)};
    case SSL_ERROR_WANT_WRITE:
      return {blocked(IoState::kWantWrite)};
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
    const ssize_t got = ::recv(descriptor_, data, size, 0);
    if (got > 0) {
      if (static_cast<std::size_t>(got) < size) readiness_.set_drained();
      return {IoState::kDone, static_cast<std::size_t>(got)};
    }
    if (got == 0) return {IoState::kClosed};
    if (errno == EINTR) continue;
    return {errno == EAGAIN || errno == EWOULDBLOCK ? blocked(IoState::kWantRead) : IoState::kFailed};
  }
}

IoResult Stream::write(const char* data, std::size_t size) {
  if (ssl_ != nullptr) {
    ERR_clear_error();
    const int result = SSL_write(ssl_, data, static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
    return result > 0 ? IoResult{IoState::kDone, static_cast<std::size_t>(result)} : after(result);
  }
  for (;;) {
    const ssize_t put = ::send(descriptor_, data, size, MSG_NOSIGNAL);
    if (put >= 0) return {IoState::kDone, static_cast<std::size_t>(put)};
    if (errno == EINTR) continue;
    return {errno == EAGAIN || errno == EWOULDBLOCK ? blocked(IoState::kWantWrite) : IoState::kFailed};
  }
}

bool Stream::is_readable() const noexcept {
  if (readiness_.is_watched() && !readiness_.may_read()) return false;
  pollfd look = {descriptor_, POLLIN, 0};
  return ::poll(&look, 1, 0) > 0 && (look.revents & POLLIN) != 0;
}

bool Stream::peer_has_closed() const noexcept {
  if (readiness_.is_watched()) return readiness_.has_hung_up();
  pollfd look = {descriptor_, POLLRDHUP, 0};
  return ::poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

bool Stream::finish_writing() {
  if (ssl_ != nullptr) {
    ERR_clear_error();
    if (SSL_is_init_finished(ssl_) == 1) SSL_shutdown(ssl_);
    ERR_clear_error();
  }
  return is_open() && ::shutdown(descriptor_, SHUT_WR) == 0;
}

void Stream::cancel() { readiness_.cancel(); }

int Stream::release() {
  readiness_.forget(descriptor_);
  return std::exchange(descriptor_, -1);
}

void Stream::close() {
  if (!is_open()) return;
  if (ssl_ != nullptr) {
    ERR_clear_error();
    if (SSL_is_init_finished(ssl_) == 1) SSL_shutdown(ssl_);
    ERR_clear_error();
  }
  readiness_.forget(descriptor_);
  ::close(std::exchange(descriptor_, -1));
}

}  // namespace waybill::http
