// A connected socket, TCP or UNIX, plain or TLS: bytes without waiting, and a wait that a coroutine can
// await.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/posix/basic_stream_descriptor.hpp>

#include "http/task.h"

struct ssl_st;  // OpenSSL's SSL

namespace waybill::http {

enum class IoState : std::uint8_t { kDone, kWantRead, kWantWrite, kClosed, kFailed };

struct IoResult {
  IoState state = IoState::kDone;
  std::size_t bytes = 0;  // kDone: at least one
};

// The calls never block: where the socket is not ready, kWantRead or kWantWrite says for what to wait. One
// type for plain and TLS, because Boost's two would compile everything above them twice. Used by its loop's
// thread only.
class Stream {
 public:
  // Takes a connected, non-blocking descriptor, and the TLS session on it; null: plain.
  Stream(boost::asio::io_context& context, int descriptor, ssl_st* tls);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  IoState handshake();  // kDone at once for a plain stream
  IoResult read(char* data, std::size_t size);
  IoResult write(const char* data, std::size_t size);

  // False when cancel() or close() ended the wait.
  Task<bool> wait(IoState what);
  // The same without a coroutine: calls back with whether the stream became ready, on a later turn of the
  // loop.
  template <class Callback>
  void on_ready(IoState what, Callback callback) {
    using boost::asio::posix::descriptor_base;
    const auto wait = what == IoState::kWantWrite ? descriptor_base::wait_write : descriptor_base::wait_read;
    descriptor_.async_wait(wait, [callback = std::move(callback)](
                                     const boost::system::error_code& error) mutable { callback(!error); });
  }
  [[nodiscard]] bool is_readable() const noexcept;
  // Whether the other side has closed or reset, seen without taking bytes.
  [[nodiscard]] bool peer_has_closed() const noexcept;

  // Tells the other side that no more will come; false when it is not there to hear it.
  bool finish_writing();
  void cancel();  // ends the waits
  void close();   // says goodbye in TLS, as far as that needs no waiting

  // Gives up the descriptor of a plain stream, open as it is.
  [[nodiscard]] int release();

  [[nodiscard]] bool is_open() const noexcept { return descriptor_.is_open(); }

 private:
  IoResult after(int result);

  boost::asio::posix::basic_stream_descriptor<boost::asio::io_context::executor_type> descriptor_;
  ssl_st* ssl_ = nullptr;
};

}  // namespace waybill::http
