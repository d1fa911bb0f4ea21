#include "store/sqlite/commands.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "store/sqlite/schema.h"

namespace waybill::store::sqlite {
namespace {

Time earlier(Time a, Time b) noexcept {
  if (a == kNever || b == kNever) return std::max(a, b);
  return std::min(a, b);
}

}  // namespace

Commands::Commands(Connection& connection, const BlobFiles& files, const Options& options)
    : connection_(connection),
      files_(files),
      names_(connection),
      counters_(connection),
      depths_(connection),
      rows_(connection),
      keys_(connection, counters_, options.recent_keys),
      deliveries_(connection, counters_),
      blobs_(connection, counters_, files, options.inline_bytes),
      max_key_(connection, "SELECT max(key) FROM jobs"),
      paused_rows_(connection, "SELECT queue FROM paused_queues"),
      insert_paused_(connection, "INSERT INTO paused_queues (queue) VALUES (?1)"),
      remove_paused_(connection, "DELETE FROM paused_queues WHERE queue = ?1"),
      insert_request_(
          connection,
          "INSERT INTO requests (key, created, run_after, endpoint, attributes, metadata, webhook, blob, "
          "body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"),
      request_blob_(connection, "SELECT blob FROM requests WHERE key = ?1"),
      webhook_(connection, "SELECT webhook FROM requests WHERE key = ?1"),
      remove_request_(connection, "DELETE FROM requests WHERE key = ?1"),
      ready_(
          connection,
          fmt::format(
              "SELECT {}, {}, r.blob, r.body FROM jobs j JOIN requests r ON r.key = j.key WHERE j.state = 2 "
              "AND j.queue = ?1 AND j.caller = ?2 ORDER BY j.priority DESC, j.key LIMIT ?3",
              kRowColumns, kRequestColumns)),
      job_(connection,
           fmt::format("SELECT {}, {} FROM jobs j JOIN requests r ON r.key = j.key WHERE j.key = ?1",
                       kRowColumns, kRequestColumns)),
      insert_ending_(
          connection,
          "INSERT INTO endings (number, key, low, queue, caller, state, ended) VALUES (?1, ?2, ?3, ?4, ?5, "
          "?6, ?7)"),
      remove_ending_(connection, "DELETE FROM endings WHERE number = ?1"),
      insert_result_(
          connection,
          "INSERT INTO results (number, status, content_type, facts, blob, body) VALUES (?1, ?2, ?3, ?4, "
          "?5, ?6)"),
      result_blob_(connection, "SELECT blob FROM results WHERE number = ?1"),
      remove_result_(connection, "DELETE FROM results WHERE number = ?1"),
      last_error_(connection, "SELECT number, code FROM errors WHERE key = ?1 ORDER BY number DESC LIMIT 1"),
      insert_error_(
          connection,
          "INSERT INTO errors (key, number, receive, started, ended, code, message, status, in_doubt) VALUES "
          "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"),
      remove_errors_(connection, "DELETE FROM errors WHERE key = ?1"),
      last_event_(connection, "SELECT start + size FROM events WHERE key = ?1 ORDER BY start DESC LIMIT 1"),
      insert_event_(connection, "INSERT INTO events (key, start, size, text) VALUES (?1, ?2, ?3, ?4)"),
      remove_events_(connection, "DELETE FROM events WHERE key = ?1"),
      due_(connection, "SELECT key FROM jobs WHERE due > 0 AND due <= ?1 ORDER BY due LIMIT ?2"),
      dead_(connection,
            "SELECT key FROM jobs WHERE state IN (5, 7, 8, 9, 10) AND state = 10 AND key > ?1 AND (?2 IS "
            "NULL OR queue = ?2) AND (?3 IS NULL OR caller = ?3) ORDER BY key LIMIT 256"),
      fact_(connection, "SELECT text FROM facts WHERE name = ?1"),
      replace_fact_(connection, "REPLACE INTO facts (name, text) VALUES (?1, ?2)"),
      endings_(
          connection,
          "SELECT number, key, queue, state, ended FROM endings WHERE number > ?1 ORDER BY number LIMIT ?2") {
}

void Commands::load() {
  names_.forget();
  counters_.load();
  depths_.load();
  deliveries_.load();
  keys_.load();
  paused_.clear();
  for (Rows rows = paused_rows_.rows(); rows.next();) paused_.insert(rows.integer(0));
  {
    Rows rows = max_key_.rows();
    ids_.continue_after(rows.next() ? rows.integer(0) : 0);
  }
  retention_seen_.clear();
  find_lost_leases();
}

Reply Commands::apply(const Command& command, Time now) {
  now_ = now;
  return std::visit([this]<class C>(const C& one) { return make_reply<C>(run(one)); }, command);
}

void Commands::flush() {
  blobs_.sync();
  depths_.flush();
  counters_.flush();
}

std::vector<Change> Commands::committed() {
  blobs_.committed();
  return std::exchange(changes_, {});
}

void Commands::rolled_back() {
  changes_.clear();
  load();
  blobs_.rolled_back();
}

void Commands::move(JobRow& row, State to, Time own_time) {
  depths_.add(row.queue, row.caller, row.state, -1);
  depths_.add(row.queue, row.caller, to, 1);
  row.state = to;
  // What waits for a person waits as long as that takes.
  row.due = is_terminal(to) || to == State::kHeld ? kNever : earlier(own_time, row.expires);
}

void Commands::end(JobRow& row, State to, const JobResult* result) {
  move(row, to, kNever);
  row.finished = now_;
  row.result = counters_.add(Counter::kEnding, 1);
  insert_ending_.run(row.result, row.key, row.low, row.queue, row.caller, stored_state(to), now_);
  if (result != nullptr) {
    const std::optional<Sha256> blob = blobs_.keep(result->body);
    if (blob) row.flags |= kResultBlob;
    insert_result_.run(row.result, result->status, optional_text(result->content_type),
                       optional_text(result->facts),
                       blob ? std::optional<Bytes>(Bytes{bytes_of(*blob)}) : std::nullopt,
                       blob ? std::nullopt : std::optional<Bytes>(Bytes{result->body}));
    counters_.add(Counter::kResults, 1);
  }
  if ((row.flags & kNotify) != 0) {
    std::string url;
    if (Rows rows = webhook_.rows(row.key); rows.next()) url = rows.text(0);
    deliveries_.add(row.key, url, now_);
    row.flags |= kDelivery;
  }
  rows_.save(row);
  changed(row);
}

// Neither the number in the order of endings nor an answer.
void Commands::forget_ending(JobRow& row) {
  if (row.result == 0) return;
  remove_ending_.run(row.result);
  if (row.state == State::kCompleted || row.state == State::kFailed) {
    if ((row.flags & kResultBlob) != 0) {
      Sha256 hash{};
      if (Rows rows = result_blob_.rows(row.result); rows.next()) hash = hash_of(rows.text(0));
      blobs_.drop(hash);
    }
    remove_result_.run(row.result);
    counters_.add(Counter::kResults, -1);
  }
  row.flags &= ~static_cast<std::uint32_t>(kResultBlob);
  row.result = 0;
  row.finished = kNever;
}

void Commands::requeue(JobRow& row) {
  forget_ending(row);
  if (row.expires != kNever && row.expires <= now_) row.expires = kNever;
  row.receives = 0;
  row.flags &= ~static_cast<std::uint32_t>(kStarted);
  move(row, State::kQueued, kNever);
  rows_.save(row);
  changed(row);
}

void Commands::remove(const JobRow& row) {
  JobRow gone = row;
  forget_ending(gone);
  if ((row.flags & kRequestBlob) != 0) {
    Sha256 hash{};
    if (Rows rows = request_blob_.rows(row.key); rows.next()) hash = hash_of(rows.text(0));
    blobs_.drop(hash);
  }
  remove_request_.run(row.key);
  if ((row.flags & kErrors) != 0) remove_errors_.run(row.key);
  if ((row.flags & kEvents) != 0) remove_events_.run(row.key);
  if ((row.flags & kDelivery) != 0) deliveries_.remove_of(row.key);
  rows_.remove(row);
  depths_.add(row.queue, row.caller, row.state, -1);
  changed(row);
  changes_.back().removed = true;
}

void Commands::add_error(JobRow& row, const AttemptError& error) {
  std::int64_t number = 1;
  if ((row.flags & kErrors) != 0) {
    if (Rows rows = last_error_.rows(row.key); rows.next()) number = rows.integer(0) + 1;
  }
  insert_error_.run(row.key, number, row.receives, row.claimed, error.ended == kNever ? now_ : error.ended,
                    error.code, error.message, error.status, static_cast<int>(error.in_doubt));
  row.flags |= kErrors;
  if (error.in_doubt) ++row.in_doubt;
}

void Commands::changed(const JobRow& row) {
  Change& change = changes_.emplace_back();
  change.id = id_of(row.key, row.low);
  change.state = row.state;
  change.queue = names_.name(row.queue);
  change.caller = names_.name(row.caller);
  change.fence = static_cast<std::uint64_t>(row.fence);
  change.result = static_cast<std::uint64_t>(row.result);
  if (row.state == State::kScheduled) change.run_after = row.due;
}

bool Commands::is_valid(const JobRow& row, const Lease& lease) const noexcept {
  return row.state == State::kRunning && static_cast<std::uint64_t>(row.fence) == lease.fence &&
         (row.owner == 0 || row.owner == epoch_);
}

}  // namespace waybill::store::sqlite
