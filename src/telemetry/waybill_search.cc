// Finding and listing waybills: dense arrays are looked through without a lock, hits are confirmed under
// theirs.
#include <algorithm>
#include <utility>

#include "telemetry/waybill_book_impl.h"

namespace waybill::telemetry {
namespace {

struct Hit {
  std::uint64_t id_high = 0;
  std::uint64_t id_low = 0;
  const WaybillSlot* slot = nullptr;
};

// The record if the slot still has the id that it was found by.
std::optional<Record> confirm(const Hit& hit) {
  const std::scoped_lock lock(hit.slot->mutex);
  if (hit.slot->record.id.high() != hit.id_high || hit.slot->record.id.low() != hit.id_low)
    return std::nullopt;
  return hit.slot->record;
}

// Chunks stay for the life of the book, so that the pointers may be used without the lock.
std::vector<const WaybillChunk*> chunks_of(WaybillBook::Impl& impl) {
  std::vector<const WaybillChunk*> chunks;
  const std::scoped_lock lock(impl.pool_mutex);
  chunks.reserve(impl.chunks.size());
  for (const auto& chunk : impl.chunks) chunks.push_back(chunk.get());
  return chunks;
}

// All slots in use whose chunk entry matches(chunk, index).
template <class Matches>
std::vector<Hit> collect(WaybillBook::Impl& impl, const Matches& matches) {
  std::vector<Hit> hits;
  for (const WaybillChunk* chunk : chunks_of(impl)) {
    for (std::size_t i = 0; i < WaybillChunk::kSlots; ++i) {
      const std::uint64_t id_high = chunk->id_high[i].load(std::memory_order_relaxed);
      if (id_high != 0 && matches(*chunk, i, id_high))
        hits.push_back({id_high, chunk->id_low[i].load(std::memory_order_relaxed), &chunk->slots[i]});
    }
  }
  return hits;
}

// Hands out hits, the latest first. A heap: mostly few of many are wanted.
class LatestFirst {
 public:
  explicit LatestFirst(std::vector<Hit> hits) : hits_(std::move(hits)) {
    std::ranges::make_heap(hits_, earlier);
  }
  [[nodiscard]] bool empty() const { return hits_.empty(); }
  Hit next() {
    std::ranges::pop_heap(hits_, earlier);
    const Hit hit = hits_.back();
    hits_.pop_back();
    return hit;
  }

 private:
  static bool earlier(const Hit& a, const Hit& b) {
    return std::pair(a.id_high, a.id_low) < std::pair(b.id_high, b.id_low);
  }
  std::vector<Hit> hits_;
};

std::optional<Record> find_by_uuid(WaybillBook::Impl& impl, const Uuid& id) {
  const auto same = [high = id.high()](const WaybillChunk&, std::size_t, std::uint64_t key) {
    return key == high;
  };
  for (const Hit& hit : collect(impl, same)) {
    if (std::optional<Record> record = confirm(hit); record && record->id == id) return record;
  }
  return std::nullopt;
}

std::optional<Record> find_by_request_id(WaybillBook::Impl& impl, std::string_view text) {
  decltype(Record::request_id) bounded;
  bounded = text;
  const auto same = [key = search_key(bounded.view())](const WaybillChunk& chunk, std::size_t i,
                                                       std::uint64_t) {
    return chunk.request_key[i].load(std::memory_order_relaxed) == key;
  };
  for (LatestFirst hits(collect(impl, same)); !hits.empty();) {
    if (std::optional<Record> record = confirm(hits.next()); record && record->request_id == bounded.view())
      return record;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Record> WaybillBook::find(std::string_view id) const {
  if (id.empty()) return std::nullopt;
  if (const std::optional<Uuid> uuid = parse_uuid(id)) {
    if (std::optional<Record> record = find_by_uuid(*impl_, *uuid)) return record;
  }
  return find_by_request_id(*impl_, id);
}

std::vector<Record> WaybillBook::list(const WaybillFilter& filter) const {
  const std::int64_t since_us = std::max<std::int64_t>(filter.since_us, 0);
  const std::uint64_t since =
      uuid_v7_high(std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::microseconds(since_us)));
  decltype(Record::route) route;
  route = filter.route;
  const auto route_key = static_cast<std::uint32_t>(search_key(route.view()));
  LatestFirst hits(collect(*impl_, [&](const WaybillChunk& chunk, std::size_t i, std::uint64_t id_high) {
    if (id_high < since) return false;
    if (route_key != 0 && chunk.route_key[i].load(std::memory_order_relaxed) != route_key) return false;
    return !filter.outcome || (chunk.state[i].load(std::memory_order_relaxed) == SlotState::kEnded &&
                               chunk.outcome[i].load(std::memory_order_relaxed) == *filter.outcome);
  }));
  std::vector<Record> records;
  while (!hits.empty() && records.size() < filter.limit) {
    const std::optional<Record> record = confirm(hits.next());
    if (!record || record->started_us < since_us || (route_key != 0 && record->route != route.view()))
      continue;
    if (filter.outcome && (record->open || record->outcome != *filter.outcome)) continue;
    records.push_back(*record);
  }
  return records;
}

}  // namespace waybill::telemetry
