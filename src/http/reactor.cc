#include "http/reactor.h"

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <sys/epoll.h>

namespace waybill::http {
namespace {

namespace asio = boost::asio;

constexpr int kEventsAtOnce = 128;
constexpr std::uint32_t kHangUp = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

int make_epoll() {
  const int descriptor = ::epoll_create1(EPOLL_CLOEXEC);
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  return descriptor;
}

}  // namespace

Reactor::Reactor(asio::io_context& context) : context_(context), epoll_(context, make_epoll()) { watch(); }

Reactor::~Reactor() {
  while (first_ != nullptr) {
    Readiness& socket = *first_;
    unlink(socket);
    socket.reactor_ = nullptr;
    // Whoever waits may own the socket, or another one of this list.
    const Readiness::Callback reader = std::move(socket.reader_), writer = std::move(socket.writer_);
    const std::move_only_function<void()> on_hang_up = std::move(socket.on_hang_up_);
  }
}

// The context looks after one descriptor, this epoll's own, which is readable while a socket has news.
void Reactor::watch() {
  epoll_.async_wait(asio::posix::descriptor_base::wait_read, [this](const boost::system::error_code& error) {
    if (error) return;
    turn();
    watch();
  });
}

void Reactor::turn() {
  std::array<epoll_event, kEventsAtOnce> events;
  const int count = ::epoll_wait(epoll_.native_handle(), events.data(), kEventsAtOnce, 0);
  untold_ = std::span(events).first(static_cast<std::size_t>(count > 0 ? count : 0));
  while (!untold_.empty()) {
    const epoll_event event = untold_.front();
    untold_ = untold_.subspan(1);
    if (event.data.ptr != nullptr) static_cast<Readiness*>(event.data.ptr)->happened(event.events);
  }
}

void Reactor::link(Readiness& socket) noexcept {
  socket.after_ = first_;
  if (first_ != nullptr) first_->before_ = &socket;
  first_ = &socket;
}

void Reactor::unlink(Readiness& socket) noexcept {
  (socket.before_ != nullptr ? socket.before_->after_ : first_) = socket.after_;
  if (socket.after_ != nullptr) socket.after_->before_ = socket.before_;
  socket.before_ = socket.after_ = nullptr;
  for (epoll_event& event : untold_) {
    if (event.data.ptr == &socket) event.data.ptr = nullptr;
  }
}

Readiness::~Readiness() {
  if (reactor_ != nullptr && watched_ != 0) reactor_->unlink(*this);
}

void Readiness::register_for(int descriptor, Way way) {
  std::uint32_t events = EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET;
  if (way == Way::kWrite) events |= EPOLLOUT;
  if (reactor_ == nullptr || (watched_ & events) == events) return;
  epoll_event event{};
  event.events = watched_ | events;
  event.data.ptr = this;
  const int how = watched_ == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  if (::epoll_ctl(reactor_->epoll_.native_handle(), how, descriptor, &event) != 0)
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
  if (watched_ == 0) reactor_->link(*this);
  watched_ = event.events;
}

void Readiness::expect(Way way, Callback callback) {
  Callback& slot = way == Way::kRead ? reader_ : writer_;
  if (!slot) {
    slot = std::move(callback);
    return;
  }
  slot = [first = std::move(slot), second = std::move(callback)](bool ready) mutable {
    first(ready);
    second(ready);
  };
}

Task<bool> Readiness::wait(int descriptor, Way way) {
  if (descriptor < 0) co_return false;
  if (is_ready(way)) co_return true;
  register_for(descriptor, way);  // here, where an exception is one of the coroutine, not of the loop
  constexpr asio::use_awaitable_t<asio::io_context::executor_type> token{};
  auto begin = [this, way](auto handler) {
    expect(way, [handler = std::move(handler)](bool ready) mutable { std::move(handler)(ready); });
  };
  const bool ready = co_await asio::async_initiate<decltype(token), void(bool)>(std::move(begin), token);
  co_return ready;
}

void Readiness::on_ready(int descriptor, Way way, Callback callback) {
  const bool open = descriptor >= 0;
  if (open && !is_ready(way)) {
    register_for(descriptor, way);
    return expect(way, std::move(callback));
  }
  if (reactor_ == nullptr) return;
  asio::post(reactor_->context_, [callback = std::move(callback), open]() mutable { callback(open); });
}

void Readiness::cancel() {
  for (Callback* slot : {&reader_, &writer_}) {
    if (!*slot || reactor_ == nullptr) continue;
    asio::post(reactor_->context_, [callback = std::exchange(*slot, nullptr)]() mutable { callback(false); });
  }
}

void Readiness::watch_peer(int descriptor, std::move_only_function<void()> on_hang_up) {
  register_for(descriptor, Way::kRead);
  on_hang_up_ = std::move(on_hang_up);
  if (hung_up_ && on_hang_up_) on_hang_up_();
}

void Readiness::happened(std::uint32_t events) {
  const bool hangs_up = !hung_up_ && (events & kHangUp) != 0;
  hung_up_ = hung_up_ || hangs_up;
  urgent_ = urgent_ || (events & EPOLLPRI) != 0;
  readable_ = readable_ || (events & (EPOLLIN | kHangUp)) != 0;
  writable_ = writable_ || (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0;
  if (hangs_up && on_hang_up_) on_hang_up_();
  // Whoever is told may destroy the socket.
  Callback reader, writer;
  if (readable_) reader = std::exchange(reader_, nullptr);
  if (writable_) writer = std::exchange(writer_, nullptr);
  if (reader) reader(true);
  if (writer) writer(true);
}

// To close the descriptor would not be enough: a child process that was forked meanwhile may have the same
// socket, and the events would go on, for an object that is gone.
void Readiness::forget(int descriptor) noexcept {
  cancel();
  if (watched_ == 0 || reactor_ == nullptr) return;
  reactor_->unlink(*this);
  ::epoll_ctl(reactor_->epoll_.native_handle(), EPOLL_CTL_DEL, descriptor, nullptr);
  watched_ = 0;
  readable_ = writable_ = hung_up_ = urgent_ = false;
}

}  // namespace waybill::http
