#include "api/job_wait.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "api/gateway.h"
#include "http/deadline.h"

namespace waybill::api {
namespace {

constexpr Duration kLookForStop = std::chrono::milliseconds(500);

TimePoint now() noexcept { return std::chrono::steady_clock::now(); }

}  // namespace

struct JobWait::State {
  explicit State(http::EventLoop& l) : loop(l) {}
  http::EventLoop& loop;
  bool news = false, gone = false;
  std::shared_ptr<http::Pending<bool>> pending;  // while it waits; shared with what wakes it

  // Not at once: whoever waits may end what calls this.
  void wake() {
    if (pending) loop.post([waiting = pending] { waiting->set(true); });
  }
  void hang_up() {
    gone = true;
    wake();
  }
};

JobWait::JobWait(const Gateway& gateway, http::Exchange& exchange)
    : gateway_(gateway), state_(std::make_shared<State>(exchange.loop())) {
  exchange.watch_for_hang_up([state = state_] { state->hang_up(); });
  state_->gone = exchange.cancelled();
}

JobWait::JobWait(const Gateway& gateway, http::EventLoop& loop, http::Cancellation& cancellation)
    : gateway_(gateway), state_(std::make_shared<State>(loop)) {
  listener_.emplace(cancellation, [state = state_] { state->hang_up(); });
}

std::function<void()> JobWait::waker() const {
  return [state = state_] {
    state->news = true;
    state->wake();
  };
}

http::Task<JobWait::End> JobWait::wait(TimePoint until) {
  const char* activity = state_->loop.set_activity(nullptr);
  End end = End::kTime;
  for (;;) {
    if (state_->gone) {
      end = End::kGone;
      break;
    }
    if (std::exchange(state_->news, false)) {
      end = End::kNews;
      break;
    }
    if (gateway_.draining()) {
      end = End::kStopping;
      break;
    }
    const TimePoint at = now();
    if (at >= until) break;
    auto pending = std::make_shared<http::Pending<bool>>();
    state_->pending = pending;
    {
      http::Deadline due(state_->loop, [pending] { pending->set(true); });
      due.set(std::min(until, at + kLookForStop));
      (void)co_await pending->get();
    }
    state_->pending = nullptr;
  }
  state_->loop.set_activity(activity);
  co_return end;
}

}  // namespace waybill::api
