// Which sockets of an event loop are ready, told to the kernel once for each socket.
//
// Boost.Asio's reactor makes a system call for each wait. Here a socket is watched edge-triggered (epoll(7))
// from its first wait to its end: what it can do is remembered, and a wait costs no system call.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>

#include "http/task.h"

struct epoll_event;

namespace waybill::http {

class Readiness;

// Of one event loop; used by its thread only.
class Reactor {
 public:
  explicit Reactor(boost::asio::io_context& context);
  ~Reactor();  // what still waits is dropped
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

 private:
  friend class Readiness;

  void watch();
  void turn();
  void link(Readiness& socket) noexcept;
  void unlink(Readiness& socket) noexcept;

  boost::asio::io_context& context_;
  boost::asio::posix::basic_stream_descriptor<boost::asio::io_context::executor_type> epoll_;
  std::span<epoll_event> untold_;  // of the turn that is under way
  Readiness* first_ = nullptr;
};

// Of one socket: what it may do without waiting, and who waits for that.
class Readiness {
 public:
  enum class Way : std::uint8_t { kRead, kWrite };
  using Callback = std::move_only_function<void(bool)>;

  explicit Readiness(Reactor& reactor) noexcept : reactor_(&reactor) {}
  ~Readiness();
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  // It was tried and would have blocked.
  void set_blocked(Way way) noexcept { (way == Way::kRead ? readable_ : writable_) = false; }
  // A read came back with less than was asked for: all that was there has been read. Not so the end, if it is
  // known of, and what is behind urgent data (tcp(7)), where a read ends too.
  void set_drained() noexcept { readable_ = hung_up_ || urgent_; }

  // False when the wait was ended by cancel(). Throws std::system_error where the socket cannot be watched,
  // as do on_ready() and watch_peer().
  Task<bool> wait(int descriptor, Way way);
  // The same without a coroutine: calls back on a later turn of the loop.
  void on_ready(int descriptor, Way way, Callback callback);
  // Ends the waits, on a later turn.
  void cancel();

  // Calls back when the other side has closed or reset, now or from now on. May not destroy the socket.
  void watch_peer(int descriptor, std::move_only_function<void()> on_hang_up);

  // From here on the loop is told what comes.
  [[nodiscard]] bool is_watched() const noexcept { return watched_ != 0; }
  // Where it is watched: whether something may be there to read; and whether the other side has closed or
  // reset.
  [[nodiscard]] bool may_read() const noexcept { return readable_; }
  [[nodiscard]] bool has_hung_up() const noexcept { return hung_up_; }

  // The descriptor is about to be closed or given away.
  void forget(int descriptor) noexcept;

 private:
  friend class Reactor;

  void register_for(int descriptor, Way way);
  void expect(Way way, Callback callback);
  void happened(std::uint32_t events);
  [[nodiscard]] bool is_ready(Way way) const noexcept { return way == Way::kRead ? readable_ : writable_; }

  Reactor* reactor_;  // null once that has gone
  Callback reader_, writer_;
  std::move_only_function<void()> on_hang_up_;
  Readiness *before_ = nullptr, *after_ = nullptr;
  std::uint32_t watched_ = 0;  // epoll's bits
  bool readable_ = false, writable_ = false, hung_up_ = false, urgent_ = false;
};

}  // namespace waybill::http
