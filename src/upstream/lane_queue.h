// The scheduler of one provider: who may call it now, who waits, and who is refused.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/result.h"
#include "upstream/rate_limit.h"
#include "upstream/terms.h"

namespace waybill::upstream {

struct LaneQueueOptions {
  std::size_t slots = 0;  // calls at a time; 0: not limited
  // Of these, for the batch lane at most; 0: all but an eighth, and one at least.
  std::size_t batch_slots = 0;
  std::size_t requests_per_minute = 0, tokens_per_minute = 0;  // 0: not limited
  std::size_t max_queue = 10'000;                              // calls that wait, of both lanes
  Duration max_wait = std::chrono::seconds(30);  // predicted, and in the end real; zero: nothing waits
  // Once the oldest call of the batch lane has waited so long, every eighth slot that frees is for that lane,
  // though interactive calls wait. All of them would turn a long queue of batch calls into the first lane.
  Duration aging = std::chrono::seconds(10);
};

class LaneQueue;

// The right to make one call, given back when it is destroyed: the slot, and what was taken of the limits per
// minute for it. Move-only; the queue outlives it.
class LaneSlot {
 public:
  LaneSlot() = default;
  LaneSlot(LaneSlot&& other) noexcept { swap(other); }
  LaneSlot& operator=(LaneSlot&& other) noexcept {
    LaneSlot(std::move(other)).swap(*this);
    return *this;
  }
  ~LaneSlot();

  [[nodiscard]] explicit operator bool() const noexcept { return queue_ != nullptr; }
  // Gives it back, and counts how long it was held towards the waits that are predicted. A call that was cut
  // short says nothing of those that follow: let the slot go out of scope instead.
  void release(TimePoint now);
  // To be told how the call goes; what was never sent is given back.
  [[nodiscard]] RateReservation& rates() noexcept { return rates_; }

 private:
  friend class LaneQueue;
  LaneSlot(LaneQueue& queue, Lane lane, RateReservation rates, TimePoint granted)
      : queue_(&queue), lane_(lane), granted_(granted), rates_(std::move(rates)) {}
  void swap(LaneSlot& other) noexcept {
    std::swap(queue_, other.queue_);
    std::swap(lane_, other.lane_);
    std::swap(granted_, other.granted_);
    std::swap(rates_, other.rates_);
  }

  LaneQueue* queue_ = nullptr;
  Lane lane_ = Lane::kInteractive;
  TimePoint granted_{};
  RateReservation rates_;
};

// Slots go to waiting calls in this order: interactive ones as they came, then batch ones, a caller in turn
// and as they came within one caller. A slot is free for the batch lane while that has less than its share.
// The first of them waits for the provider's limits per minute too, and nobody goes before it with a smaller
// call.
//
// Thread-safe. Nothing is called under its lock: answers are posted to the executor of the waiter. It has no
// timer; whoever owns it calls expire() when next_due() has come, or every so often. Allocates only for calls
// that wait. Destroyed after stop(), and after every slot is back.
class LaneQueue {
 public:
  struct Ticket {
    Lane lane = Lane::kInteractive;
    std::string_view caller;  // the name of its key; copied if it waits
    TimePoint deadline = TimePoint::max();
    Executor* executor = nullptr;  // where `done` runs; must not run it inside post()
    std::uint64_t tokens = 0;      // estimated of the prompt, and as many as the answer may have
  };
  // A slot, or kDeadlineExceeded (its own deadline came while it waited), kOverloaded (it waited max_wait),
  // kShuttingDown. A slot that nobody wants any more goes back by itself.
  using Done = std::move_only_function<void(Result<LaneSlot>)>;
  using WaiterId = std::uint64_t;
  struct Admission {
    LaneSlot slot;        // granted at once; else
    WaiterId waiter = 0;  // it waits under this number, and `done` will be called once
  };

  struct Stats {
    struct PerLane {
      std::size_t in_use = 0, waiting = 0;
      Duration predicted_wait{}, oldest_wait{};  // of a call that came now; of the one that waits longest
    };
    PerLane interactive, batch;
    Duration hold{};  // how long a slot is held, a moving average; zero: not known yet
  };

  // `provider` is named in errors.
  LaneQueue(std::string provider, const LaneQueueOptions& options);
  ~LaneQueue();
  LaneQueue(const LaneQueue&) = delete;
  LaneQueue& operator=(const LaneQueue&) = delete;

  // Refused at once, without a call of `done`: kOverloaded (the queue is full, or the predicted wait would
  // pass the deadline or max_wait), kRateLimited (the same because of the limits per minute),
  // both with retry_after; kDeadlineExceeded (it has passed already); kShuttingDown.
  [[nodiscard]] Result<Admission> enter(const Ticket& ticket, TimePoint now, Done done);
  // True: it waited, and `done` will not be called. False: `done` has been posted, with a slot or an error.
  bool cancel(WaiterId waiter, TimePoint now);
  // Answers those that have waited for too long, and grants what the limits per minute have kept back.
  void expire(TimePoint now);
  // When expire() may have something to do; a quarter of a second away at most, as what a provider
  // says may change the limits meanwhile. Max: nothing waits.
  [[nodiscard]] TimePoint next_due() const;

  // New limits, for calls that wait too; those that have a slot keep it.
  void configure(const LaneQueueOptions& options, TimePoint now);
  // Answers all that wait with kShuttingDown, and refuses the rest.
  void stop();

  [[nodiscard]] Stats stats(TimePoint now) const;
  // Of the limits per minute, as configured and as the provider tells them.
  [[nodiscard]] RateLimit::Level level(RateKind kind, TimePoint now) const { return rates_.level(kind, now); }

 private:
  friend class LaneSlot;

  // The calls of one caller that wait in the batch lane, oldest first.
  struct CallerTurn {
    std::string name;
    std::set<WaiterId> waiters;
  };
  using Turns = std::list<CallerTurn>;
  struct Waiter {
    std::uint64_t tokens;
    TimePoint entered, deadline, give_up;  // give_up: the deadline, or when it has waited max_wait
    Executor* executor;
    Done done;
    Turns::iterator turn;  // of the batch lane
  };
  using Waiters = std::map<WaiterId, Waiter>;  // numbers rise: the first has waited longest
  struct Answer {
    Executor* executor;
    Done done;
    Result<LaneSlot> result;
  };
  using Answers = std::vector<Answer>;

  void give_back(Lane lane, std::optional<TimePoint> granted, std::optional<TimePoint> now) noexcept;

  // With the lock held:
  TimePoint advance(TimePoint now) noexcept;
  [[nodiscard]] std::size_t waiting() const noexcept { return waiters_[0].size() + waiters_[1].size(); }
  [[nodiscard]] std::size_t batch_cap() const noexcept;
  [[nodiscard]] bool has_room(Lane lane) const noexcept;
  [[nodiscard]] std::optional<Lane> next_lane(TimePoint now) const noexcept;
  struct Prediction {
    Duration limits{};  // by the limits per minute
    Duration slots{};   // by calls that are under way or go first
    [[nodiscard]] Duration wait() const noexcept { return std::max(limits, slots); }
  };
  [[nodiscard]] Prediction predict(Lane lane, std::size_t own_waiting, std::uint64_t tokens,
                                   TimePoint now) const;
  [[nodiscard]] std::optional<Error> refusal(const Ticket& ticket, TimePoint now) const;
  WaiterId enqueue(const Ticket& ticket, TimePoint now, Done done);
  Waiter take(Lane lane, Waiters::iterator waiter);
  void serve(TimePoint now, Answers& answers);
  void answer_expired(TimePoint now, Answers& answers);
  static void post(Answers& answers);

  const std::string provider_;
  RateLimit rates_;           // locked within mutex_
  mutable std::mutex mutex_;  // guards all that follows
  LaneQueueOptions options_;
  TimePoint now_{};          // the latest that was told
  TimePoint rates_until_{};  // when the first that waits may have what it needs of the limits per minute
  double hold_ns_ = 0;
  std::array<std::size_t, 2> in_use_{};  // by lane
  std::array<Waiters, 2> waiters_;       // by lane
  std::array<std::uint64_t, 2> waiting_tokens_{};
  std::set<std::pair<TimePoint, WaiterId>> give_up_;
  Turns turns_;                                                    // the first is next
  std::unordered_map<std::string_view, Turns::iterator> turn_of_;  // by the names in turns_
  WaiterId last_waiter_ = 0;
  unsigned passed_over_ = 0;  // interactive calls that were served before a waiting batch call
  bool stopped_ = false;
};

}  // namespace waybill::upstream
