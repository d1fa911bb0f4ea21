// Idempotency keys: who asks twice under one key gets one job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "store/job.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/counters.h"

namespace waybill::store::sqlite {

// The table `keys`. A key's home is the low half of its hash but for the last two bits; keys with one home
// lie in the four slots from there, without a gap, so that a free home says that a key is new. One of them is
// taken for the 126 bits of its hash. Five with one home cannot be made, and do not happen.
class KeyTable {
 public:
  KeyTable(Connection& connection, Counters& counters);

  struct Entry {
    std::int64_t slot = 0;
    std::int64_t job = 0;
    Hash128 payload;
    Time until = kNever;
  };
  [[nodiscard]] std::optional<Entry> find(const IdempotencyKey& key);
  // False where it is there already: find() says what it is.
  [[nodiscard]] bool insert(const IdempotencyKey& key, std::int64_t job);
  // Another job, payload and end for a key that is there.
  void replace(const Entry& entry, const IdempotencyKey& key, std::int64_t job);

  // Looks at the next keys in their order, at most `looks` of them, and removes those whose time has passed,
  // at most `removals`. Round after round; when a round has found out when the next ends, none begins before
  // that.
  struct Forgotten {
    std::size_t removed = 0;
    bool more = false;
  };
  [[nodiscard]] Forgotten forget(Time now, std::size_t looks, std::size_t removals);
  void rolled_back();

 private:
  void remove(std::int64_t slot);
  void noted(Time until);

  Connection& connection_;
  Counters& counters_;
  Statement window_, insert_, replace_, scan_, remove_, close_up_;
  std::int64_t at_;          // where forget() goes on
  Time first_end_ = kNever;  // of the keys that this round has kept, and of those that came since; 0: at once
  Time round_end_;
};

}  // namespace waybill::store::sqlite
