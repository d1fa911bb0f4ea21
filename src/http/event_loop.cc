#include "http/event_loop.h"

#include <boost/asio/post.hpp>
#include <pthread.h>

#include "http/response.h"

namespace waybill::http {
namespace {

TimePoint now() noexcept { return std::chrono::steady_clock::now(); }

std::string date_now() {
  return http_date(
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

}  // namespace

// One thread runs the context: the reactor needs no locks, posting from other threads stays safe.
EventLoop::EventLoop(unsigned index, EventLoopHooks hooks, Duration busy_poll)
    : index_(index),
      hooks_(std::move(hooks)),
      busy_poll_(busy_poll),
      context_(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO),
      work_(boost::asio::make_work_guard(context_)),
      reactor_(context_),
      timer_(context_),
      date_(date_now()) {
  last_tick_.store(now().time_since_epoch().count());
}

EventLoop::~EventLoop() {
  stop();
  join();
  while (!locals_.empty()) locals_.pop_back();  // the later made may use the earlier
}

void EventLoop::start() {
  schedule_tick(now() + kTick);
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), ("io-" + std::to_string(index_)).c_str());
    run();
  });
}

// To be woken takes a thread 20 to 50 us, and a call to a model has two such waits. With more requests under
// way there is always something to do, and the time is better left to others.
void EventLoop::run() {
  if (busy_poll_ <= Duration::zero()) {
    context_.run();
    return;
  }
  TimePoint awake_until{};
  while (!context_.stopped()) {
    if (context_.poll() > 0) {
      awake_until = now() + busy_poll_;
    } else if (under_way_ > 1 || now() >= awake_until) {
      context_.run_one();
      awake_until = now() + busy_poll_;
    }
  }
}

void EventLoop::stop() {
  post([this] {
    work_.reset();
    context_.stop();
  });
}

void EventLoop::join() {
  if (thread_.joinable()) thread_.join();
}

void EventLoop::post(std::move_only_function<void()> work) { boost::asio::post(context_, std::move(work)); }

void EventLoop::schedule_tick(TimePoint due) {
  timer_.expires_at(std::chrono::time_point_cast<std::chrono::steady_clock::duration>(due));
  timer_.async_wait([this, due](const boost::system::error_code& error) {
    if (!error) on_tick(due);
  });
}

void EventLoop::on_tick(TimePoint due) {
  const TimePoint arrived = now();
  last_tick_.store(arrived.time_since_epoch().count(), std::memory_order_relaxed);
  if (hooks_.lag) hooks_.lag(index_, arrived - due);
  date_ = date_now();
  if (hooks_.tick) hooks_.tick(index_);
  schedule_tick(arrived + kTick);
}

const char* EventLoop::set_activity(const char* what) noexcept {
  if (what != nullptr) activity_since_.store(now().time_since_epoch().count(), std::memory_order_relaxed);
  const char* before = activity_.load(std::memory_order_relaxed);
  activity_.store(what, std::memory_order_release);
  return before;
}

LoopActivity EventLoop::activity() const noexcept {
  const char* what = activity_.load(std::memory_order_acquire);
  return {TimePoint(Duration(activity_since_.load(std::memory_order_relaxed))), what};
}

TimePoint EventLoop::last_tick() const noexcept {
  return TimePoint(Duration(last_tick_.load(std::memory_order_relaxed)));
}

}  // namespace waybill::http
