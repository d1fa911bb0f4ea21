#include "store/sqlite/key_table.h"

#include <algorithm>
#include <limits>
#include <ranges>
#include <vector>

namespace waybill::store::sqlite {
namespace {

constexpr std::int64_t kFirstSlot = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kForEver = std::numeric_limits<std::int64_t>::max();

std::int64_t high_of(const Hash128& key) noexcept { return static_cast<std::int64_t>(key.high); }

RecentKeys::Row row_of(const IdempotencyKey& key, std::int64_t job) noexcept {
  return {key.key, key.payload, job, stored_end(key.until)};
}

}  // namespace

KeyTable::KeyTable(Connection& connection, Counters& counters, std::size_t recent)
    : connection_(connection),
      counters_(counters),
      recent_(connection, counters, recent),
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
  if (const std::optional<RecentKeys::Place> place = recent_.find(key.key)) {
    const std::optional<RecentKeys::Row> row = recent_.load(*place);
    if (!row) return std::nullopt;
    return Entry{place, 0, row->job, row->payload, row->end};
  }
  for (Rows rows = window_.rows(home_of(key.key)); rows.next();) {
    if (rows.integer(1) != high_of(key.key)) continue;
    return Entry{std::nullopt,
                 rows.integer(0),
                 rows.integer(4),
                 {static_cast<std::uint64_t>(rows.integer(2)), static_cast<std::uint64_t>(rows.integer(3))},
                 rows.integer(5)};
  }
  return std::nullopt;
}

void KeyTable::insert(const IdempotencyKey& key, std::int64_t job, Time now) {
  recent_.append(row_of(key, job));
  counters_.add(Counter::kKeys, 1);
  std::size_t ended = 0;
  for (std::size_t due = recent_.due(); due > 0 && settle_next(now, ended); --due) {
  }
}

void KeyTable::replace(const Entry& entry, const IdempotencyKey& key, std::int64_t job) {
  if (entry.recent) return recent_.replace(*entry.recent, row_of(key, job));
  replace_.run(entry.slot, key.payload.low, key.payload.high, job, stored_end(key.until));
  noted(stored_end(key.until));
}

std::size_t KeyTable::settle(Time now, std::size_t max) {
  std::size_t ended = 0;
  if (!recent_.begin(now)) return ended;
  for (; max > 0 && settle_next(now, ended); --max) {
  }
  return ended;
}

bool KeyTable::settle_next(Time now, std::size_t& ended) {
  const std::vector<RecentKeys::Row> rows = recent_.take();
  for (const RecentKeys::Row& row : rows) {
    if (row.end > now) {
      put(row);
    } else {
      counters_.add(Counter::kKeys, -1);
      ++ended;
    }
  }
  return !rows.empty();
}

void KeyTable::put(const RecentKeys::Row& row) {
  const std::int64_t home = home_of(row.key);
  for (std::int64_t slot = home; slot <= home + kInHome; ++slot) {
    insert_.run(slot, high_of(row.key), row.payload.low, row.payload.high, row.job, row.end);
    if (connection_.failed()) return;
    if (sqlite3_changes(connection_.handle()) == 1) return noted(row.end);
  }
  connection_.fail_with(SQLITE_CONSTRAINT, "five idempotency keys have one place");
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
  for (const std::int64_t slot : ended | std::views::reverse) remove(slot);  // those behind it move
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
  counters_.add(Counter::kKeys, -1);
  for (++slot; (slot & kInHome) != 0; ++slot) {
    close_up_.run(slot);
    if (sqlite3_changes(connection_.handle()) == 0) return;
    noted(0);  // the round may be past it now
  }
}

void KeyTable::load() {
  recent_.load();
  at_ = kFirstSlot;
  first_end_ = kNever;
  round_end_ = kForEver;
}

}  // namespace waybill::store::sqlite
