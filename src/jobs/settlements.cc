#include "jobs/settlements.h"

namespace waybill::jobs {
namespace {

std::size_t bytes_of(const Settlement& settlement) {
  std::size_t bytes = sizeof(Settlement) + settlement.queue.size() + settlement.events.size();
  if (const auto* finish = std::get_if<store::Finish>(&settlement.how)) {
    bytes += finish->result.body.size() + finish->result.facts.size() + finish->result.content_type.size();
  } else if (const auto* failed = std::get_if<store::Fail>(&settlement.how)) {
    bytes += failed->error.code.size() + failed->error.message.size();
  }
  return bytes;
}

}  // namespace

const Settlement& Settlements::add(Settlement settlement) {
  Entry& entry = entries_[settlement.lease.id];
  if (entry.waits) --waiting_;
  bytes_ -= entry.bytes;
  entry.settlement = std::move(settlement);
  entry.bytes = bytes_of(entry.settlement);
  entry.waits = false;
  bytes_ += entry.bytes;
  return entry.settlement;
}

void Settlements::events_written(const Uuid& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.settlement.events = {};
  bytes_ -= entry.bytes;
  entry.bytes = bytes_of(entry.settlement);
  bytes_ += entry.bytes;
}

void Settlements::remove(const Uuid& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  if (found->second.waits) --waiting_;
  bytes_ -= found->second.bytes;
  entries_.erase(found);
}

std::size_t Settlements::keep(const Uuid& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.waits) return 0;
  found->second.waits = true;
  ++waiting_;
  return shrink();
}

std::size_t Settlements::shrink() {
  std::size_t dropped = 0;
  while (bytes_ > max_bytes_) {
    Entry* largest = nullptr;
    for (auto& [id, entry] : entries_) {
      const bool can_shrink = entry.waits && (std::holds_alternative<store::Finish>(entry.settlement.how) ||
                                              !entry.settlement.events.empty());
      if (can_shrink && (largest == nullptr || entry.bytes > largest->bytes)) largest = &entry;
    }
    if (largest == nullptr) break;
    Settlement& settlement = largest->settlement;
    settlement.events = {};
    if (std::holds_alternative<store::Finish>(settlement.how)) {
      store::Fail failed;
      failed.lease = settlement.lease;
      failed.error.code = "result_lost";
      failed.error.message =
          "the answer had to be dropped: the store could not be written, and too many answers waited for it";
      settlement.how = std::move(failed);
    }
    bytes_ -= largest->bytes;
    largest->bytes = bytes_of(settlement);
    bytes_ += largest->bytes;
    ++dropped;
  }
  return dropped;
}

std::vector<const Settlement*> Settlements::take(std::size_t most) {
  std::vector<const Settlement*> taken;
  if (waiting_ == 0) return taken;
  for (auto& [id, entry] : entries_) {
    if (taken.size() == most) break;
    if (!entry.waits) continue;
    entry.waits = false;
    --waiting_;
    taken.push_back(&entry.settlement);
  }
  return taken;
}

void Settlements::for_each(const std::function<void(const Settlement&)>& visit) const {
  for (const auto& [id, entry] : entries_) visit(entry.settlement);
}

}  // namespace waybill::jobs
