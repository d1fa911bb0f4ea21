// The connections of one event loop to other servers, kept for the next call.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "http/client_connection.h"
#include "http/deadline.h"
#include "http/event_loop.h"

namespace waybill::http {

// One for each loop: EventLoop::local(). The loop's thread only.
class ClientPool {
 public:
  static constexpr Duration kIdleTime = std::chrono::seconds(30);  // shorter than what servers commonly allow
  static constexpr std::size_t kMostIdle = 128;                    // to one origin

  explicit ClientPool(EventLoop& loop);

  // One that is open and idle where there is one, else one that is yet to be opened.
  [[nodiscard]] std::unique_ptr<ClientConnection> take(const std::shared_ptr<const Origin>& origin,
                                                       Resolver& resolver);
  [[nodiscard]] std::unique_ptr<ClientConnection> make(const std::shared_ptr<const Origin>& origin,
                                                       Resolver& resolver);
  // Keeps it if it can be used again.
  void give_back(std::unique_ptr<ClientConnection> connection);

 private:
  struct Idle {
    std::unique_ptr<ClientConnection> connection;
    TimePoint since{};
  };
  void reap();

  EventLoop& loop_;
  std::map<std::shared_ptr<const Origin>, std::vector<Idle>> idle_;  // the latest last
  Deadline reaping_;
};

}  // namespace waybill::http
