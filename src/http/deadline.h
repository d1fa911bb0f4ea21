// Deadlines of what waits on a loop, kept cheaply: setting one is a store, and all of a loop are looked at
// together.
#pragma once

#include <functional>

#include <boost/asio/steady_timer.hpp>

#include "base/clock.h"
#include "http/event_loop.h"
#include "http/task.h"

namespace waybill::http {

class DeadlineList;

// Calls `expired` once after the time it was set to has passed, up to kGrain later. All of it on the loop's
// thread; `expired` may set or destroy any deadline, its own too.
class Deadline {
 public:
  static constexpr Duration kGrain = std::chrono::milliseconds(10);

  Deadline(EventLoop& loop, std::move_only_function<void()> expired);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  void set(TimePoint at) noexcept;
  void clear() noexcept { at_ = TimePoint::max(); }

 private:
  friend class DeadlineList;
  DeadlineList& list_;
  std::move_only_function<void()> expired_;
  TimePoint at_ = TimePoint::max();
  Deadline *before_ = nullptr, *after_ = nullptr;
};

// One for each loop: EventLoop::local().
class DeadlineList {
 public:
  explicit DeadlineList(EventLoop& loop);

 private:
  friend class Deadline;
  void add(Deadline& deadline) noexcept;
  void remove(Deadline& deadline) noexcept;
  void watch();  // wakes while there is something to look at
  void look();
  void look_at_all(TimePoint now);

  boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                    boost::asio::wait_traits<std::chrono::steady_clock>,
                                    boost::asio::io_context::executor_type>
      timer_;
  TimePoint soonest_ = TimePoint::max();  // none is set to a time before it
  Deadline* first_ = nullptr;
  Deadline* next_ = nullptr;  // while looking: the one after that which is being looked at
  bool watching_ = false;
};

}  // namespace waybill::http
