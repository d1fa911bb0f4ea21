// Waiting for news of jobs while a client holds its request open.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "http/cancellation.h"
#include "http/exchange.h"
#include "http/pending.h"
#include "http/task.h"

namespace waybill::api {

class Gateway;

// On one loop.
class JobWait {
 public:
  enum class End : std::uint8_t {
    kNews,      // wake() was called since the last wait
    kTime,      // it is late
    kGone,      // the client hung up
    kStopping,  // the server ends and is to keep nobody waiting
  };

  // Listens to the client's hanging up from now on, instead of who listened before.
  JobWait(const Gateway& gateway, http::Exchange& exchange);
  // The client of a call that has its own way of noticing.
  JobWait(const Gateway& gateway, http::EventLoop& loop, http::Cancellation& cancellation);
  JobWait(const JobWait&) = delete;
  JobWait& operator=(const JobWait&) = delete;

  // To be called on the loop, also when this is gone.
  [[nodiscard]] std::function<void()> waker() const;
  // Returns at once where there is news already.
  http::Task<End> wait(TimePoint until);

 private:
  struct State;  // shared with what may call back later
  const Gateway& gateway_;
  const std::shared_ptr<State> state_;
  std::optional<http::Cancellation::Listener> listener_;
};

}  // namespace waybill::api
