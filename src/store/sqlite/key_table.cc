#include "store/sqlite/key_table.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace waybill::store::sqlite {
namespace {

constexpr std::int64_t kFirstSlot = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kForEver = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kInHome = 3;  // the bits of a slot that are not its home's

std::int64_t home_of(const IdempotencyKey& key) noexcept {
  return static_cast<std::int64_t>(key.key.low) & ~kInHome;
}
std::int64_t high_of(const IdempotencyKey& key) noexcept { return static_cast<std::int64_t>(key.key.high); }
std::int64_t end_of(const IdempotencyKey& key) noexcept { return key.until == kNever ? kForEver : key.until; }

}  // namespace

KeyTable::KeyTable(Connection& connection, Counters& counters)
    : connection_(connection),
      counters_(counters),
      window_(connection,
              "SELECT slot, high, payload_low, payload_high, job, until FROM keys WHERE slot BETWEEN ?1 AND "
              "?1 + 3"),
      insert_(connection,
              "INSERT INTO keys (slot, high, payload_low, payload_high, job, until) VALUES (?1, ?2, ?3, ?4, "
              "?5, ?6) "
              "ON CONFLICT (slot) DO NOTHING"),
      replace_(connection,
               "UPDATE keys SET payload_low = ?2, payload_high = ?3, job = ?4, until = ?5 WHERE slot = ?1"),
      scan_(connection, "SELECT slot, until FROM keys WHERE slot >= ?1 ORDER BY slot LIMIT ?2"),
      remove_(connection, "DELETE FROM keys WHERE slot = ?1"),
      close_up_(connection, "UPDATE keys SET slot = slot - 1 WHERE slot = ?1"),
      at_(kFirstSlot),
      round_end_(kForEver) {}

std::optional<KeyTable::Entry> KeyTable::find(const IdempotencyKey& key) {
  for (Rows rows = window_.rows(home_of(key)); rows.next();) {
    if (rows.integer(1) != high_of(key)) continue;
    return Entry{rows.integer(0),
                 rows.integer(4),
                 {static_cast<std::uint64_t>(rows.integer(2)), static_cast<std::uint64_t>(rows.integer(3))},
                 rows.integer(5)};
  }
  return std::nullopt;
}

bool KeyTable::insert(const IdempotencyKey& key, std::int64_t job) {
  for (std::int64_t slot = home_of(key); slot <= home_of(key) + kInHome; ++slot) {
    insert_.run(slot, high_of(key), key.payload.low, key.payload.high, job, end_of(key));
    if (connection_.failed() || sqlite3_changes(connection_.handle()) == 1) {
      counters_.add(Counter::kKeys, 1);
      noted(end_of(key));
      return true;
    }
    if (slot == home_of(key) && find(key)) return false;
  }
  connection_.fail_with(SQLITE_CONSTRAINT, "five idempotency keys have one place");
  return true;
}

void KeyTable::replace(const Entry& entry, const IdempotencyKey& key, std::int64_t job) {
  replace_.run(entry.slot, key.payload.low, key.payload.high, job, end_of(key));
  noted(end_of(key));
}

void KeyTable::noted(Time until) { round_end_ = std::min(round_end_, until); }

KeyTable::Forgotten KeyTable::forget(Time now, std::size_t looks, std::size_t removals) {
  Forgotten forgotten;
  if (removals == 0 || (at_ == kFirstSlot && first_end_ > now)) return forgotten;
  std::vector<std::int64_t> ended;
  std::int64_t last = kFirstSlot;
  std::size_t looked = 0;
  for (Rows rows = scan_.rows(at_, looks); ended.size() < removals && rows.next(); ++looked) {
    last = rows.integer(0);
    if (rows.integer(1) <= now) {
      ended.push_back(last);
    } else {
      noted(rows.integer(1));
    }
  }
  for (const std::int64_t slot : ended) remove(slot);
  forgotten.removed = ended.size();
  forgotten.more = ended.size() == removals;
  if (looked == looks || forgotten.more) {
    at_ = last + 1;
  } else {  // the round is over
    at_ = kFirstSlot;
    first_end_ = round_end_;
    round_end_ = kForEver;
  }
  return forgotten;
}

void KeyTable::remove(std::int64_t slot) {
  remove_.run(slot);
  if (sqlite3_changes(connection_.handle()) != 1) return;  // moved by the one before
  counters_.add(Counter::kKeys, -1);
  for (++slot; (slot & kInHome) != 0; ++slot) {
    close_up_.run(slot);
    if (sqlite3_changes(connection_.handle()) == 0) return;
  }
}

void KeyTable::rolled_back() {
  at_ = kFirstSlot;
  first_end_ = kNever;
  round_end_ = kForEver;
}

}  // namespace waybill::store::sqlite
