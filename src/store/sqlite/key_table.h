// Idempotency keys: who asks twice under one key gets one job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "store/job.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/counters.h"
#include "store/sqlite/recent_keys.h"

namespace waybill::store::sqlite {

// A key is among the recent ones first, then in the table `keys`, in the order of hashes: keys with one home
// lie in the four slots from there, without a gap. Five with one home cannot be made, and do not happen.
class KeyTable {
 public:
  // `recent`: the capacity of RecentKeys.
  KeyTable(Connection& connection, Counters& counters, std::size_t recent);

  struct Entry {
    std::optional<RecentKeys::Place> recent;
    std::int64_t slot = 0;  // in `keys`, where it is not recent
    std::int64_t job = 0;
    Hash128 payload;
    Time until = kNever;
  };
  [[nodiscard]] std::optional<Entry> find(const IdempotencyKey& key);
  // A key that find() does not find.
  void insert(const IdempotencyKey& key, std::int64_t job, Time now);
  // Another job, payload and end for a key that is there.
  void replace(const Entry& entry, const IdempotencyKey& key, std::int64_t job);

  // In a quiet moment: brings some of the recent keys to their places in `keys`, at most about `max`; those
  // whose time has passed are removed instead. Returns how many of these there were.
  std::size_t settle(Time now, std::size_t max);

  // Looks at the next keys in their order, at most `looks` of them, and removes those whose time has passed,
  // at most `removals`. Round after round; when a round has found out when the next ends, none begins before
  // that.
  struct Forgotten {
    std::size_t removed = 0;
    bool more = false;
  };
  [[nodiscard]] Forgotten forget(Time now, std::size_t looks, std::size_t removals);

  void load();  // from the file; also after a rollback

 private:
  bool settle_next(Time now, std::size_t& ended);  // false: there is none
  void put(const RecentKeys::Row& row);
  void remove(std::int64_t slot);
  void noted(Time until);

  Connection& connection_;
  Counters& counters_;
  RecentKeys recent_;
  Statement window_, insert_, replace_, scan_, remove_, close_up_;
  std::int64_t at_;          // where forget() goes on
  Time first_end_ = kNever;  // of the keys that this round has kept, and of those that came since; 0: at once
  Time round_end_;
};

}  // namespace waybill::store::sqlite
