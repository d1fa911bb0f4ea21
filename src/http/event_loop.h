// One thread that waits for sockets and timers, and runs what is posted to it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/executor.h"
#include "http/reactor.h"

namespace waybill::http {

// Called by the loop's thread at every tick.
struct EventLoopHooks {
  std::function<void(unsigned index, Duration lag)> lag;  // how late the tick came
  std::function<void(unsigned index)> tick;               // what has to be looked at now and then
};

// What a loop is doing, for whoever asks from another thread why it does not answer.
struct LoopActivity {
  TimePoint since{};
  const char* what = nullptr;  // a literal; null while the loop waits for events
};

// Work that was posted before stop() still runs. Nothing that runs here may block, or compute for more than a
// fraction of a millisecond.
class EventLoop final : public Executor {
 public:
  static constexpr Duration kTick = std::chrono::milliseconds(100);

  // `busy_poll`: with at most one request under way it looks for news this long before it sleeps.
  EventLoop(unsigned index, EventLoopHooks hooks, Duration busy_poll = {});
  ~EventLoop() override;  // stop() and join
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  void start();  // the thread, named io-N
  void stop();
  void join();

  void post(std::move_only_function<void()> work) override;

  [[nodiscard]] boost::asio::io_context& context() noexcept { return context_; }
  [[nodiscard]] Reactor& reactor() noexcept { return reactor_; }
  [[nodiscard]] unsigned index() const noexcept { return index_; }
  // The one T of this loop, made as T(loop) when it is first asked for and destroyed with the loop, once its
  // thread has ended. This loop's thread only.
  template <class T>
  [[nodiscard]] T& local() {
    static const char kind = 0;
    for (const Local& each : locals_) {
      if (each.kind == &kind) return *static_cast<T*>(each.object.get());
    }
    auto made = std::make_shared<T>(*this);
    T& object = *made;
    locals_.push_back({&kind, std::move(made)});
    return object;
  }

  // A request that is being answered. This loop's thread only.
  class UnderWay {
   public:
    explicit UnderWay(EventLoop& loop) noexcept : loop_(loop) { ++loop_.under_way_; }
    ~UnderWay() { --loop_.under_way_; }
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

   private:
    EventLoop& loop_;
  };

  // For the Date header; this loop's thread only.
  [[nodiscard]] std::string_view date() const noexcept { return date_; }

  // For bytes on their way from a socket, so that a connection that waits needs no room for them; holds
  // nothing across a wait. This loop's thread only.
  [[nodiscard]] std::span<char> read_buffer() noexcept { return read_buffer_; }

  // What begins now, for activity(), and what was there before it; null: back to the events. This loop's
  // thread only.
  const char* set_activity(const char* what) noexcept;
  // The same around a piece of work that does not wait.
  class Activity {
   public:
    Activity(EventLoop& loop, const char* what) noexcept : loop_(loop) { loop_.set_activity(what); }
    ~Activity() { loop_.set_activity(nullptr); }
    Activity(const Activity&) = delete;
    Activity& operator=(const Activity&) = delete;

   private:
    EventLoop& loop_;
  };
  // Thread-safe. `alive` is the loop's last tick: one that is older than a few ticks is a loop that hangs.
  [[nodiscard]] LoopActivity activity() const noexcept;
  [[nodiscard]] TimePoint last_tick() const noexcept;

 private:
  void run();
  void schedule_tick(TimePoint due);
  void on_tick(TimePoint due);

  const unsigned index_;
  const EventLoopHooks hooks_;
  const Duration busy_poll_;
  unsigned under_way_ = 0;
  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  Reactor reactor_;
  boost::asio::steady_timer timer_;
  std::string date_;
  std::array<char, 64U << 10> read_buffer_;
  std::atomic<const char*> activity_{nullptr};
  std::atomic<Duration::rep> activity_since_{0};
  std::atomic<Duration::rep> last_tick_{0};
  struct Local {
    const void* kind;
    std::shared_ptr<void> object;  // shared for its deleter only
  };
  std::vector<Local> locals_;  // after the context, in which they wait
  std::thread thread_;
};

}  // namespace waybill::http
