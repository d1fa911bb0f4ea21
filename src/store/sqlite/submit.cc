// Submit: a new job, or the one that its idempotency key has already.
#include <utility>

#include "store/sqlite/commands.h"
#include "store/sqlite/schema.h"

namespace waybill::store::sqlite {

// What the key stands for already; nothing where it is free, or has become free.
std::optional<Submit::Reply> Commands::existing(const IdempotencyKey& key,
                                                const std::optional<KeyTable::Entry>& entry) {
  if (!entry || entry->until <= now_) return std::nullopt;
  const std::optional<JobRow> row = rows_.load(entry->job);
  if (!row) return std::nullopt;
  Submit::Reply reply;
  reply.how = entry->payload == key.payload ? Submit::How::kExisting : Submit::How::kKeyReused;
  reply.id = id_of(row->key, row->low);
  reply.state = row->state;
  return reply;
}

// As existing(); where the key is free it is this job's from now on.
std::optional<Submit::Reply> Commands::claim(const IdempotencyKey& key, std::int64_t job) {
  const std::optional<KeyTable::Entry> entry = keys_.find(key);
  std::optional<Submit::Reply> reply = existing(key, entry);
  if (reply) return reply;
  if (entry) {
    keys_.replace(*entry, key, job);
  } else {
    keys_.insert(key, job, now_);
  }
  return std::nullopt;
}

Submit::Reply Commands::run(const Submit& submit) {
  const std::int64_t queue = names_.intern(submit.queue);
  if (submit.max_depth != 0 && depths_.waiting(queue) >= submit.max_depth) {
    std::optional<Submit::Reply> reply;
    if (submit.key) reply = existing(*submit.key, keys_.find(*submit.key));
    return reply.value_or(Submit::Reply{Submit::How::kQueueFull, {}, {}, 0});
  }
  const Uuid id = ids_.next(now_);
  if (submit.key) {
    if (std::optional<Submit::Reply> reply = claim(*submit.key, key_of(id))) return *reply;
  }

  JobRow row;
  row.key = key_of(id);
  row.low = low_of(id);
  row.queue = queue;
  row.caller = names_.intern(submit.caller);
  row.priority = submit.priority;
  row.expires = submit.expires;
  row.max_receives = submit.max_receives;
  if (!submit.webhook.empty()) row.flags |= kNotify;
  const std::optional<Sha256> blob = blobs_.keep(submit.body);
  if (blob) row.flags |= kRequestBlob;
  depths_.add(row.queue, row.caller, row.state, 1);
  if (submit.running_until != kNever) {
    lease(row, submit.running_until, true);
    row.flags |= kStarted;
  } else if (submit.run_after > now_) {
    move(row, State::kScheduled, submit.run_after);
  } else {
    row.due = row.expires;
  }
  rows_.insert(row);
  insert_request_.run(row.key, now_, stored_time(submit.run_after), names_.intern(submit.endpoint),
                      optional_text(submit.attributes), optional_text(submit.metadata),
                      optional_text(submit.webhook),
                      blob ? std::optional<Bytes>(Bytes{bytes_of(*blob)}) : std::nullopt,
                      blob ? std::nullopt : std::optional<Bytes>(Bytes{submit.body}));
  changed(row);
  changes_.back().created = true;
  return {Submit::How::kNew, id, row.state, static_cast<std::uint64_t>(row.fence)};
}

}  // namespace waybill::store::sqlite
