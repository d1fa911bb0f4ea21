// Whose delivery is next, of those that were claimed.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "store/command.h"

namespace waybill::jobs {

// Hosts take turns, and none has more than a quarter of the deliveries that are out: one that is slow delays
// its own only. Not thread-safe.
class WebhookTurns {
 public:
  struct Turn {
    std::string host;  // with its scheme and port
    store::ClaimDeliveries::Due due;
    TimePoint until{};  // to be begun by then, or not at all: the claim runs out, and another may take it
  };

  explicit WebhookTurns(std::size_t concurrency) { set_concurrency(concurrency); }
  void set_concurrency(std::size_t concurrency);

  // How many deliveries may be claimed now.
  [[nodiscard]] std::size_t room() const noexcept;
  // False: enough of this host wait already. The delivery is left to run out of its claim, which leaves room
  // for those of other hosts.
  [[nodiscard]] bool add(Turn turn);
  // The next that may begin, as begun: ended() must follow. Those whose time is over are dropped.
  [[nodiscard]] std::optional<Turn> next(TimePoint now);
  void ended(std::string_view host);
  // The host asked to be left alone. For a minute at most: it may have receivers of others too.
  void pause(std::string_view host, Duration wait, TimePoint now);

  [[nodiscard]] std::size_t out() const noexcept { return out_; }

 private:
  struct Host {
    std::deque<Turn> waiting;
    std::size_t out = 0;
    TimePoint paused_until{};
  };

  std::size_t concurrency_ = 1, of_host_ = 1;  // out at a time
  std::size_t out_ = 0, waiting_ = 0;
  std::map<std::string, Host, std::less<>> hosts_;  // those that have something, or are paused
  std::string last_;                                // whose turn was the last
};

}  // namespace waybill::jobs
