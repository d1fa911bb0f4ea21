// What people and services do to jobs from outside: cancel, retry, redrive, remove, pause; deliveries; and
// facts.
#include <utility>

#include "store/sqlite/commands.h"
#include "store/sqlite/schema.h"

namespace waybill::store::sqlite {

Cancel::Reply Commands::run(const Cancel& cancel) {
  std::optional<JobRow> row = rows_.load(cancel.id);
  if (!row) return {};
  const State before = row->state;
  if (!is_terminal(before)) end(*row, State::kCancelled, nullptr);
  return {true, before, row->state};
}

Retry::Reply Commands::run(const Retry& retry) {
  std::optional<JobRow> row = rows_.load(retry.id);
  if (!row) return {};
  const State before = row->state;
  if (before == State::kHeld || (is_terminal(before) && before != State::kCompleted)) requeue(*row);
  return {true, before, row->state};
}

Redrive::Reply Commands::run(const Redrive& redrive) {
  Redrive::Reply reply;
  std::optional<std::int64_t> queue, caller;
  if (redrive.queue && !(queue = names_.find(*redrive.queue))) return reply;
  if (redrive.caller && !(caller = names_.find(*redrive.caller))) return reply;
  std::vector<std::int64_t> keys;
  for (std::int64_t after = 0; reply.size() < redrive.max && !connection_.failed(); after = keys.back()) {
    keys.clear();
    for (Rows rows = dead_.rows(after, queue, caller); rows.next();) keys.push_back(rows.integer(0));
    if (keys.empty()) break;
    for (const std::int64_t key : keys) {
      std::optional<JobRow> row = rows_.load(key);
      if (!row) break;
      if (redrive.error_code) {
        Rows rows = last_error_.rows(key);
        if (!rows.next() || rows.text(1) != *redrive.error_code) continue;
      }
      reply.push_back(id_of(row->key, row->low));
      if (!redrive.dry_run) requeue(*row);
      if (reply.size() == redrive.max) break;
    }
  }
  return reply;
}

Remove::Reply Commands::run(const Remove& remove) {
  const std::optional<JobRow> row = rows_.load(remove.id);
  if (!row) return {};
  if (is_terminal(row->state)) this->remove(*row);
  return {true, row->state, row->state};
}

Pause::Reply Commands::run(const Pause& pause) {
  const std::int64_t queue = names_.intern(pause.queue);
  const bool before = paused_.contains(queue);
  if (pause.paused && !before) {
    paused_.insert(queue);
    insert_paused_.run(queue);
  } else if (!pause.paused && before) {
    paused_.erase(queue);
    remove_paused_.run(queue);
  }
  return before;
}

ClaimDeliveries::Reply Commands::run(const ClaimDeliveries& claim) {
  ClaimDeliveries::Reply reply;
  for (DeliveryRows::Due& due : deliveries_.claim(claim.max, now_, claim.until)) {
    Rows rows = job_.rows(due.job);
    if (!rows.next()) continue;
    reply.push_back({static_cast<std::uint64_t>(due.id), due.attempts, due.created, std::move(due.url),
                     job_of(row_of(rows), rows, names_)});
  }
  return reply;
}

SettleDelivery::Reply Commands::run(const SettleDelivery& settle) { return deliveries_.settle(settle); }

Resend::Reply Commands::run(const Resend& resend) {
  const std::optional<JobRow> row = rows_.load(resend.job);
  return row && deliveries_.resend(row->key, now_);
}

Remember::Reply Commands::run(const Remember& remember) {
  {
    Rows rows = fact_.rows(remember.name);
    if (rows.next() && rows.text(0) == remember.text) return false;
  }
  replace_fact_.run(remember.name, remember.text);
  return true;
}

}  // namespace waybill::store::sqlite
