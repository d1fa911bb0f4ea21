// The changes that a store makes, as values: many of them become one transaction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "store/job.h"

namespace waybill::store {

// A lease, as its holder names it. A fence that is not the job's latest finishes nothing.
struct Lease {
  Uuid id;
  std::uint64_t fence = 0;
};

// What became of a change that needs a valid lease.
enum class Held : std::uint8_t {
  kDone,
  kStale,  // another has the lease, or had it since; or the job has ended
  kGone,   // there is no such job
};

struct Submit {
  std::string queue, caller, endpoint, body, attributes, metadata;
  int priority = 0;
  Time run_after = kNever, expires = kNever;
  std::uint32_t max_receives = 3;
  std::uint64_t max_depth =
      0;  // refused where so many of its queue wait (queued or scheduled); 0: any number
  std::optional<IdempotencyKey> key;
  std::string webhook;  // a delivery to this address is made when it ends; empty: none
  // Not 0: it begins as the running job of whoever submits, leased until then, its call started.
  Time running_until = kNever;

  enum class How : std::uint8_t {
    kNew,
    kExisting,   // the key's job, as it stands
    kKeyReused,  // the key has a job with another payload: nothing was made
    kQueueFull,  // nothing was made
  };
  struct Reply {
    How how = How::kNew;
    Uuid id;
    State state = State::kQueued;
    std::uint64_t fence = 0;  // of a running job that is new
  };
};

// The next jobs of one queue: callers in turn, of one caller the higher priority first and then the older.
// Counts a receive of each.
struct Claim {
  std::string queue;
  std::size_t max = 1;
  Time until = kNever;  // of the lease
  bool own = true;      // by this process: void when the process has ended
  struct Leased {
    Job job;
    std::string body;
  };
  using Reply = std::vector<Leased>;
};

// The call of a leased job begins: what is lost from now on is in doubt.
struct Start {
  Lease lease;
  using Reply = Held;
};

struct Renew {
  std::vector<Lease> leases;
  Time until = kNever;
  using Reply = std::vector<Held>;
};

// Ends a leased job: kCompleted or kFailed.
struct Finish {
  Lease lease;
  State state = State::kCompleted;
  JobResult result;
  using Reply = Held;
};

// An attempt that came to nothing: the job is scheduled again, or, where its receives are used up, dead.
struct Fail {
  Lease lease;
  AttemptError error;  // receive and started are filled in by the store
  Time retry_at = kNever;
  bool dead = false;  // at once, whatever receives are left
  struct Reply {
    Held held = Held::kDone;
    State state = State::kScheduled;
  };
};

// Gives a lease back as if it had not been claimed: the receive does not count.
struct Release {
  Lease lease;
  Time run_after = kNever;  // kNever: at once
  using Reply = Held;
};

// Events of a job that streams, after those it has. Kept until the job is removed.
struct Append {
  Lease lease;
  std::string events;
  using Reply = Held;
};

// Takes back what has not ended, also while it runs: its lease is void at once. Anything else stays as it is.
struct Cancel {
  Uuid id;
  struct Reply {
    bool found = false;
    State before = State::kQueued, after = State::kQueued;
  };
};

// A job that ended without the answer that was asked for, or is held, is queued again with all its receives;
// its errors are kept, what it was answered is not, and an expiry that has passed no longer holds. Any other
// stays as it is.
struct Retry {
  Uuid id;
  using Reply = Cancel::Reply;
};

// The same for dead letters, the oldest first.
struct Redrive {
  std::optional<std::string> queue, caller, error_code;  // of the last error
  std::size_t max = 1000;
  bool dry_run = false;
  using Reply = std::vector<Uuid>;
};

// Removes a job that has ended, or says why not: found, before.
struct Remove {
  Uuid id;
  using Reply = Cancel::Reply;
};

// Nothing of the queue is claimed while it is paused. Kept across restarts.
struct Pause {
  std::string queue;
  bool paused = true;
  using Reply = bool;  // whether it was before
};

// How long jobs are kept when they have ended.
struct Retention {
  std::string queue;
  std::int64_t completed_us = 0, failed_us = 0, dead_us = 0;  // failed: cancelled and expired too
};

// What time brings, at most `max` jobs of it: scheduled ones are queued, leases that ran out count as an
// attempt that failed ("lease_expired"), expired jobs end, those past their retention are removed, keys are
// forgotten.
struct Sweep {
  std::vector<Retention> retention;  // a queue without one is kept for ever
  // Queues where a job whose call had begun is held for a person, not tried again.
  std::vector<std::string> hold_in_doubt;
  std::size_t max = 1000;
  struct Reply {
    std::size_t queued = 0, lease_expired = 0, in_doubt = 0, dead = 0, expired = 0, removed = 0, keys = 0;
    bool more = false;  // there was more than `max`
  };
};

// Deliveries: that a job has ended is to be told to its webhook.
struct ClaimDeliveries {
  std::size_t max = 1;
  Time until = kNever;  // taken again after that
  struct Due {
    std::uint64_t delivery = 0;
    std::uint32_t attempts = 0;  // before this one
    Time created = kNever;
    std::string url;
    Job job;  // without errors
  };
  using Reply = std::vector<Due>;
};
struct SettleDelivery {
  std::uint64_t delivery = 0;
  enum class To : std::uint8_t { kDelivered, kAgain, kDead } to = To::kDelivered;
  Time again_at = kNever;
  unsigned status = 0;
  std::string error;
  std::string disable_url;  // not empty: this address wants no more; its deliveries are dead from now on,
                            // also those of jobs that end later
  using Reply = bool;       // whether it was there
};
// The latest delivery of a job once more, from the beginning of its schedule; also enables its address again.
struct Resend {
  Uuid job;
  using Reply = bool;  // whether it has one
};

// Small facts that outlive the program, by name: what a caller has spent.
struct Remember {
  std::string name, text;
  using Reply = bool;  // whether the name had another text, or none
};

using Command =
    std::variant<Submit, Claim, Start, Renew, Finish, Fail, Release, Append, Cancel, Retry, Redrive, Remove,
                 Pause, Sweep, ClaimDeliveries, SettleDelivery, Resend, Remember>;
// The alternative of the same index; several have one type.
using Reply = std::variant<Submit::Reply, Claim::Reply, Start::Reply, Renew::Reply, Finish::Reply,
                           Fail::Reply, Release::Reply, Append::Reply, Cancel::Reply, Retry::Reply,
                           Redrive::Reply, Remove::Reply, Pause::Reply, Sweep::Reply, ClaimDeliveries::Reply,
                           SettleDelivery::Reply, Resend::Reply, Remember::Reply>;

template <class C, std::size_t index = 0>
consteval std::size_t command_index() {
  if constexpr (std::is_same_v<C, std::variant_alternative_t<index, Command>>) {
    return index;
  } else {
    return command_index<C, index + 1>();
  }
}
template <class C>
[[nodiscard]] Reply make_reply(typename C::Reply reply) {
  return Reply(std::in_place_index<command_index<C>()>, std::move(reply));
}
template <class C>
[[nodiscard]] typename C::Reply take_reply(Reply reply) {
  return std::get<command_index<C>()>(std::move(reply));
}

// A job that is in another state than before, or has more events.
struct Change {
  Uuid id{};
  State state = State::kQueued;
  std::string queue{}, caller{};
  std::uint64_t fence = 0;
  std::uint64_t result = 0;  // of one that has ended: its number in the order of endings
  Time run_after = kNever;   // of one that is scheduled
  bool created = false;      // it is new
  bool events = false;       // only its events are new
  bool removed = false;
  bool lease_expired = false;  // its lease ran out, or its process ended
  bool in_doubt = false;       // its call had begun, and nobody knows what became of it
};

}  // namespace waybill::store
