#include "store/sqlite/depths.h"

#include <algorithm>

#include "store/sqlite/schema.h"

namespace waybill::store::sqlite {

Depths::Depths(Connection& connection)
    : load_(connection, "SELECT queue, caller, state, jobs FROM depths"),
      save_(connection, "REPLACE INTO depths (queue, caller, state, jobs) VALUES (?1, ?2, ?3, ?4)") {}

void Depths::load() {
  queues_.clear();
  totals_.fill(0);
  changed_.clear();
  for (Rows rows = load_.rows(); rows.next();) {
    add(rows.integer(0), rows.integer(1), loaded_state(rows.integer(2)), rows.integer(3));
  }
  changed_.clear();
  for (auto& [queue_id, queue] : queues_) {
    for (auto& [caller_id, caller] : queue.callers) caller.changed.fill(false);
  }
}

void Depths::flush() {
  for (const Changed& change : changed_) {
    Caller& caller = queues_[change.queue].callers[change.caller];
    const auto at = static_cast<std::size_t>(change.state);
    caller.changed[at] = false;
    save_.run(change.queue, change.caller, stored_state(change.state), caller.jobs[at]);
  }
  changed_.clear();
}

void Depths::add(std::int64_t queue_id, std::int64_t caller_id, State state, std::int64_t jobs) {
  Queue& queue = queues_[queue_id];
  Caller& caller = queue.callers[caller_id];
  const auto at = static_cast<std::size_t>(state);
  caller.jobs[at] += jobs;
  totals_[at] += jobs;
  if (state == State::kQueued || state == State::kScheduled) queue.waiting += jobs;
  if (!caller.changed[at]) {
    caller.changed[at] = true;
    changed_.push_back({queue_id, caller_id, state});
  }
  if (state == State::kQueued && caller.jobs[at] > 0 && !caller.in_turns) {
    caller.in_turns = true;
    queue.turns.push_back(caller_id);
  }
}

std::uint64_t Depths::waiting(std::int64_t queue) const {
  const auto found = queues_.find(queue);
  return found == queues_.end()
             ? 0
             : static_cast<std::uint64_t>(std::max<std::int64_t>(0, found->second.waiting));
}

std::uint64_t Depths::total(State state) const {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, totals_[static_cast<std::size_t>(state)]));
}

std::vector<Depths::Turn> Depths::take_turns(std::int64_t queue_id, std::size_t max) {
  std::vector<Turn> turns;
  const auto found = queues_.find(queue_id);
  if (found == queues_.end()) return turns;
  Queue& queue = found->second;
  const auto queued = static_cast<std::size_t>(State::kQueued);
  std::unordered_map<std::int64_t, std::size_t> places;  // in `turns`, by caller
  for (std::size_t given = 0; given < max && !queue.turns.empty();) {
    const std::int64_t caller_id = queue.turns.front();
    queue.turns.pop_front();
    Caller& caller = queue.callers[caller_id];
    const auto [place, is_new] = places.try_emplace(caller_id, turns.size());
    const auto already = is_new ? 0 : static_cast<std::int64_t>(turns[place->second].jobs);
    const std::int64_t left = caller.jobs[queued] - already;
    if (left <= 0) {
      if (is_new) places.erase(place);
      caller.in_turns = false;
      continue;
    }
    if (is_new) turns.push_back({caller_id, 0});
    // With nobody else to give way to it gets all that is left to give.
    const std::size_t jobs =
        queue.turns.empty() ? std::min(max - given, static_cast<std::size_t>(left)) : std::size_t{1};
    turns[place->second].jobs += jobs;
    given += jobs;
    if (left > static_cast<std::int64_t>(jobs)) {
      queue.turns.push_back(caller_id);
    } else {
      caller.in_turns = false;
    }
  }
  return turns;
}

}  // namespace waybill::store::sqlite
