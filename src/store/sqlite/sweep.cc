// Sweep: what time brings.
#include <algorithm>
#include <set>
#include <utility>

#include "store/sqlite/commands.h"
#include "store/sqlite/schema.h"

namespace waybill::store::sqlite {
namespace {

constexpr std::size_t kLooks = 16;     // rows that are looked at for each job that may be changed
constexpr std::size_t kSettled = 512;  // recent keys: a millisecond or two
constexpr std::int64_t kFreePages = 256, kPagesAtOnce = 64;

}  // namespace

Sweep::Reply Commands::run(const Sweep& sweep) {
  Sweep::Reply reply;
  std::size_t left = sweep.max;
  sweep_lost(sweep, reply, left);
  sweep_due(sweep, reply, left);
  sweep_retention(sweep, reply, left);
  reply.keys = keys_.settle(now_, kSettled);
  const KeyTable::Forgotten keys = keys_.forget(now_, sweep.max * kLooks, left);
  reply.keys += keys.removed;
  reply.more = reply.more || keys.more;
  give_back_space();
  return reply;
}

// The leases of a process that is no more: all that are running when the store is opened, but for those that
// were leased to others.
void Commands::find_lost_leases() {
  lost_.clear();
  std::uint64_t running = depths_.total(State::kRunning);
  Statement find(connection_, "SELECT key, owner FROM jobs WHERE due > 0 AND state = 4 ORDER BY due");
  for (Rows rows = find.rows(); running > 0 && rows.next(); --running) {
    const std::int64_t owner = rows.integer(1);
    if (owner != 0 && owner != epoch_) lost_.push_back(rows.integer(0));
  }
  std::ranges::reverse(lost_);
}

void Commands::sweep_lost(const Sweep& sweep, Sweep::Reply& reply, std::size_t& left) {
  for (; left > 0 && !lost_.empty(); --left) {
    std::optional<JobRow> row = rows_.load(lost_.back());
    lost_.pop_back();
    const bool is_lost = row && row->state == State::kRunning && row->owner != 0 && row->owner != epoch_;
    if (is_lost) lose_lease(*row, sweep, reply);
  }
  if (!lost_.empty()) reply.more = true;
}

void Commands::sweep_due(const Sweep& sweep, Sweep::Reply& reply, std::size_t& left) {
  std::vector<std::int64_t> keys;
  for (Rows rows = due_.rows(now_, left); rows.next();) keys.push_back(rows.integer(0));
  for (const std::int64_t key : keys) {
    std::optional<JobRow> row = rows_.load(key);
    if (!row) continue;
    if (row->state == State::kHeld) {  // as earlier versions left it
      row->due = kNever;
      rows_.save_due(*row);
    } else if (row->expires != kNever && row->expires <= now_) {
      end(*row, State::kExpired, nullptr);
      ++reply.expired;
    } else if (row->state == State::kRunning) {
      lose_lease(*row, sweep, reply);
    } else {
      move(*row, State::kQueued, kNever);
      rows_.save(*row);
      changed(*row);
      ++reply.queued;
    }
  }
  left -= keys.size();
  if (left == 0) reply.more = true;
}

void Commands::lose_lease(JobRow& row, const Sweep& sweep, Sweep::Reply& reply) {
  const bool in_doubt = (row.flags & kStarted) != 0;
  ++reply.lease_expired;
  if (in_doubt) ++reply.in_doubt;
  add_error(row, {0, kNever, kNever, "lease_expired",
                  in_doubt ? "the worker was lost after the call had begun: nobody knows what became of it"
                           : "the worker was lost before it called anybody",
                  0, in_doubt});
  const auto tell = [this, in_doubt] {
    changes_.back().lease_expired = true;
    changes_.back().in_doubt = in_doubt;
  };
  if (row.expires != kNever && row.expires <= now_) {
    end(row, State::kExpired, nullptr);
    ++reply.expired;
    return tell();
  }
  const bool holds =
      in_doubt && std::ranges::find(sweep.hold_in_doubt, names_.name(row.queue)) != sweep.hold_in_doubt.end();
  if (!holds && row.receives >= row.max_receives) {
    end(row, State::kDead, nullptr);
    ++reply.dead;
    return tell();
  }
  move(row, holds ? State::kHeld : State::kQueued, kNever);
  rows_.save(row);
  changed(row);
  tell();
}

// Endings lie in the order of their time. For each length of retention there is a place up to which they have
// been looked at, so that what is kept longer is passed once and not with each sweep.
void Commands::sweep_retention(const Sweep& sweep, Sweep::Reply& reply, std::size_t& left) {
  std::map<std::pair<std::int64_t, State>, std::int64_t> retention;
  for (const Retention& one : sweep.retention) {
    const std::optional<std::int64_t> queue = names_.find(one.queue);
    if (!queue) continue;
    retention[{*queue, State::kCompleted}] = one.completed_us;
    for (const State state : {State::kFailed, State::kCancelled, State::kExpired}) {
      retention[{*queue, state}] = one.failed_us;
    }
    retention[{*queue, State::kDead}] = one.dead_us;
  }
  if (retention != retention_) {
    retention_ = std::move(retention);
    retention_seen_.clear();
  }
  std::set<std::int64_t> lengths;
  for (const auto& [of, length] : retention_) {
    if (length > 0) lengths.insert(length);
  }
  for (const std::int64_t length : lengths) {
    std::int64_t& seen = retention_seen_[length];
    std::vector<std::int64_t> keys;
    std::size_t looked = 0;
    const std::size_t looks = sweep.max * kLooks;
    for (Rows rows = endings_.rows(seen, looks); keys.size() < left && rows.next(); ++looked) {
      if (rows.integer(4) > now_ - length) break;
      seen = rows.integer(0);
      const auto of = retention_.find({rows.integer(2), loaded_state(rows.integer(3))});
      if (of != retention_.end() && of->second == length) keys.push_back(rows.integer(1));
    }
    if (looked == looks || keys.size() == left) reply.more = true;
    for (const std::int64_t key : keys) {
      if (const std::optional<JobRow> row = rows_.load(key)) remove(*row);
    }
    reply.removed += keys.size();
    left -= keys.size();
  }
}

// Pages that nothing uses any more go back to the file system, a few at a time, once a quarter of the file is
// free: less than that is soon used again.
void Commands::give_back_space() {
  const std::int64_t free = connection_.number("PRAGMA freelist_count");
  if (free < kFreePages || free * 4 < connection_.number("PRAGMA page_count")) return;
  static_assert(kPagesAtOnce == 64);
  connection_.execute("PRAGMA incremental_vacuum(64)");
}

}  // namespace waybill::store::sqlite
