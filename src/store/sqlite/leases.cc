// Claim, and what the holder of a lease may do with it.
#include <algorithm>
#include <utility>

#include "store/sqlite/commands.h"
#include "store/sqlite/schema.h"

namespace waybill::store::sqlite {

std::vector<Commands::Ready> Commands::ready(std::int64_t queue, const Depths::Turn& turn) {
  std::vector<Ready> found;
  found.reserve(turn.jobs);
  for (Rows rows = ready_.rows(queue, turn.caller, turn.jobs); rows.next();) {
    Ready& one = found.emplace_back();
    one.row = row_of(rows);
    one.job = job_of(one.row, rows, names_);
    if (rows.is_null(kAfterJobColumns)) {
      one.body = rows.text(kAfterJobColumns + 1);
      continue;
    }
    Result<std::string> body = files_.read(hash_of(rows.text(kAfterJobColumns)));
    if (body) {
      one.body = std::move(*body);
    } else if (body.error().code == ErrorCode::kNotFound || body.error().code == ErrorCode::kCorrupt) {
      one.lost = true;
    } else {
      connection_.fail_with(SQLITE_CANTOPEN, body.error().message);
    }
  }
  return found;
}

void Commands::lease(JobRow& row, Time until, bool own) {
  move(row, State::kRunning, until);
  row.claimed = now_;
  ++row.receives;
  ++row.fence;
  row.flags &= ~static_cast<std::uint32_t>(kStarted);
  row.owner = own ? epoch_ : 0;
}

Claim::Reply Commands::run(const Claim& claim) {
  Claim::Reply reply;
  const std::optional<std::int64_t> queue = names_.find(claim.queue);
  if (!queue || paused_.contains(*queue)) return reply;
  while (reply.size() < claim.max && !connection_.failed()) {
    std::size_t found = 0;
    for (const Depths::Turn& turn : depths_.take_turns(*queue, claim.max - reply.size())) {
      for (Ready& one : ready(*queue, turn)) {
        ++found;
        JobRow& row = one.row;
        if (row.expires != kNever && row.expires <= now_) {
          end(row, State::kExpired, nullptr);
          continue;
        }
        lease(row, claim.until, claim.own);
        if (one.lost) {
          add_error(row, {0, kNever, kNever, "body_lost", "the file with the job's body is gone or damaged",
                          0, false});
          end(row, State::kDead, nullptr);
          continue;
        }
        rows_.save(row);
        changed(row);
        one.job.state = row.state;
        one.job.claimed = row.claimed;
        one.job.receives = row.receives;
        one.job.fence = static_cast<std::uint64_t>(row.fence);
        one.job.started = false;
        reply.push_back({std::move(one.job), std::move(one.body)});
      }
    }
    if (found == 0) break;
  }
  return reply;
}

Commands::Held Commands::held(const Lease& lease) {
  Held held;
  held.row = rows_.load(lease.id);
  if (!held.row) {
    held.held = store::Held::kGone;
  } else if (!is_valid(*held.row, lease)) {
    held.row.reset();
    held.held = store::Held::kStale;
  }
  return held;
}

Start::Reply Commands::run(const Start& start) {
  Held held = this->held(start.lease);
  if (held.row && (held.row->flags & kStarted) == 0) {
    held.row->flags |= kStarted;
    rows_.save_flags(*held.row);
  }
  return held.held;
}

Renew::Reply Commands::run(const Renew& renew) {
  Renew::Reply reply;
  reply.reserve(renew.leases.size());
  for (const Lease& lease : renew.leases) {
    Held held = this->held(lease);
    if (held.row) {
      held.row->due = held.row->expires == kNever ? renew.until : std::min(renew.until, held.row->expires);
      rows_.save_due(*held.row);
    }
    reply.push_back(held.held);
  }
  return reply;
}

Finish::Reply Commands::run(const Finish& finish) {
  Held held = this->held(finish.lease);
  if (held.row) {
    end(*held.row, finish.state == State::kFailed ? State::kFailed : State::kCompleted, &finish.result);
  }
  return held.held;
}

Fail::Reply Commands::run(const Fail& fail) {
  Held held = this->held(fail.lease);
  if (!held.row) return {held.held, State::kScheduled};
  JobRow& row = *held.row;
  add_error(row, fail.error);
  if (fail.dead || row.receives >= row.max_receives) {
    end(row, State::kDead, nullptr);
  } else {
    const bool later = fail.retry_at > now_;
    move(row, later ? State::kScheduled : State::kQueued, later ? fail.retry_at : kNever);
    rows_.save(row);
    changed(row);
  }
  changes_.back().in_doubt = fail.error.in_doubt;
  return {held.held, row.state};
}

Release::Reply Commands::run(const Release& release) {
  Held held = this->held(release.lease);
  if (held.row) {
    JobRow& row = *held.row;
    --row.receives;
    row.flags &= ~static_cast<std::uint32_t>(kStarted);
    const bool later = release.run_after > now_;
    move(row, later ? State::kScheduled : State::kQueued, later ? release.run_after : kNever);
    rows_.save(row);
    changed(row);
  }
  return held.held;
}

Append::Reply Commands::run(const Append& append) {
  Held held = this->held(append.lease);
  if (!held.row || append.events.empty()) return held.held;
  JobRow& row = *held.row;
  std::int64_t start = 0;
  if ((row.flags & kEvents) == 0) {
    row.flags |= kEvents;
    rows_.save_flags(row);
  } else if (Rows rows = last_event_.rows(row.key); rows.next()) {
    start = rows.integer(0);
  }
  insert_event_.run(row.key, start, append.events.size(), Bytes{append.events});
  changed(row);
  changes_.back().events = true;
  return held.held;
}

}  // namespace waybill::store::sqlite
