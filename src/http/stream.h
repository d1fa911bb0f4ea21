// A connected socket, TCP or UNIX, plain or TLS: bytes without waiting, and a wait that a coroutine can
// await.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "http/reactor.h"
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
  Stream(Reactor& reactor, int descriptor, ssl_st* tls);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  IoState handshake();  // kDone at once for a plain stream
  IoResult read(char* data, std::size_t size);
  IoResult write(const char* data, std::size_t size);

  // False when cancel() or close() ended the wait.
  Task<bool> wait(IoState what) { return readiness_.wait(descriptor_, way(what)); }
  // The same without a coroutine: calls back with whether the stream became ready, on a later turn of the
  // loop.
  void on_ready(IoState what, Readiness::Callback callback) {
    readiness_.on_ready(descriptor_, way(what), std::move(callback));
  }
  // Calls back, within the loop's next turn or at once, when the other side has closed or reset. The callback
  // may not destroy the stream.
  void watch_peer(std::move_only_function<void()> on_hang_up) {
    readiness_.watch_peer(descriptor_, std::move(on_hang_up));
  }
  // As far as the loop has been told: of what has come since its last turn nothing is known yet. To read is
  // the way to know more.
  [[nodiscard]] bool is_readable() const noexcept;
  // Whether the other side has closed or reset, seen without taking bytes.
  [[nodiscard]] bool peer_has_closed() const noexcept;

  // Tells the other side that no more will come; false when it is not there to hear it.
  bool finish_writing();
  void cancel();  // ends the waits
  void close();   // says goodbye in TLS, as far as that needs no waiting

  // Gives up the descriptor of a plain stream, open as it is.
  [[nodiscard]] int release();

  [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }

 private:
  static Readiness::Way way(IoState what) noexcept {
    return what == IoState::kWantWrite ? Readiness::Way::kWrite : Readiness::Way::kRead;
  }
  IoResult after(int result);
  IoState blocked(IoState what) noexcept;

  int descriptor_;  // -1: closed
  ssl_st* ssl_ = nullptr;
  Readiness readiness_;
};

}  // namespace waybill::http
