#include "telemetry/waybill_book.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/hash.h"
#include "telemetry/waybill_book_impl.h"

namespace waybill::telemetry {
namespace {

std::int64_t to_us(std::int64_t ns) { return ns / 1000; }

// Threads are spread over the shards in the order they come.
std::size_t shard_of_this_thread() noexcept {
  static std::atomic<std::size_t> threads{0};
  thread_local const std::size_t mine = threads.fetch_add(1, std::memory_order_relaxed);
  return mine % WaybillBook::Impl::kShards;
}

std::int64_t wall_minus_steady() noexcept {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  const auto steady = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(wall - steady).count();
}

}  // namespace

std::int64_t Ledger::imbalance() const noexcept {
  const std::uint64_t known = std::accumulate(ended.begin(), ended.end(), in_flight);
  return static_cast<std::int64_t>(accepted - known);
}

WaybillBookOptions fit(WaybillBookOptions options) noexcept {
  constexpr double kBytes = static_cast<double>(sizeof(WaybillChunk)) / WaybillChunk::kSlots;
  const auto all =
      static_cast<double>(options.keep + (kOutcomes - 1) * options.keep_per_failure + options.keep_slowest);
  const double share = static_cast<double>(options.max_bytes) / (all * kBytes);
  if (share >= 1) return options;
  for (std::size_t* number : {&options.keep, &options.keep_per_failure, &options.keep_slowest})
    *number = static_cast<std::size_t>(static_cast<double>(*number) * share);
  return options;
}

std::uint64_t search_key(std::string_view text) noexcept { return text.empty() ? 0 : hash64(text) | 1; }

WaybillBook::Impl::Impl(const WaybillBookOptions& o, const Clock& c, std::vector<WaybillSink*> s)
    : options(fit(o)), clock(c), sinks(std::move(s)) {
  wall_offset_ns.store(wall_minus_steady(), std::memory_order_relaxed);
}

// --- opening
// ---------------------------------------------------------------------------------------------------

WaybillSlot* WaybillBook::Impl::take_free(Shard& shard) {
  if (WaybillSlot* slot = shard.free.pop()) return slot;
  constexpr std::size_t kBatch = 32;
  const std::scoped_lock lock(pool_mutex);
  if (pool.first() == nullptr) add_chunk();
  for (std::size_t i = 0; i < kBatch && pool.first() != nullptr; ++i) shard.free.push_front(pool.pop());
  return shard.free.pop();
}

void WaybillBook::Impl::add_chunk() {
  WaybillChunk& chunk = *chunks.emplace_back(std::make_unique<WaybillChunk>());
  for (std::size_t i = 0; i < WaybillChunk::kSlots; ++i) {
    WaybillSlot& slot = chunk.slots[i];
    slot.book = this;
    slot.chunk = &chunk;
    slot.index = i;
    pool.push_front(&slot);
  }
}

WaybillSlot* WaybillBook::Impl::open(std::string_view endpoint, TimePoint started) {
  const std::int64_t wall_ns =
      started.time_since_epoch().count() + wall_offset_ns.load(std::memory_order_relaxed);
  const Uuid id = uuid_v7(std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::nanoseconds(wall_ns)));
  Shard& shard = shards[shard_of_this_thread()];
  const std::scoped_lock lock(shard.mutex);
  WaybillSlot* slot = take_free(shard);
  slot->started = started;
  {
    const std::scoped_lock slot_lock(slot->mutex);
    slot->record = Record{};
    slot->record.id = id;
    slot->record.started_us = to_us(wall_ns);
    slot->record.endpoint = endpoint;
  }
  WaybillChunk& chunk = *slot->chunk;
  chunk.request_key[slot->index].store(0, std::memory_order_relaxed);
  chunk.route_key[slot->index].store(0, std::memory_order_relaxed);
  chunk.id_low[slot->index].store(id.low(), std::memory_order_relaxed);
  chunk.id_high[slot->index].store(id.high(), std::memory_order_relaxed);
  // The ledger moves here, both sides of it under one lock.
  chunk.state[slot->index].store(SlotState::kOpen, std::memory_order_relaxed);
  ++shard.accepted;
  return slot;
}

// --- closing
// ---------------------------------------------------------------------------------------------------

void WaybillBook::Impl::close(WaybillSlot* slot, Outcome outcome, unsigned status) noexcept {
  const TimePoint now = clock.now();
  Record copy;
  {
    const std::scoped_lock slot_lock(slot->mutex);
    Record& record = slot->record;
    record.outcome = outcome;
    record.status = static_cast<std::uint16_t>(std::min(status, 999U));
    const std::int64_t ns = std::max<std::int64_t>((now - slot->started).count(), 0);
    record.duration_us = static_cast<std::uint64_t>(to_us(ns));
    record.open = false;
    copy = record;
    record.tracestate.reset();  // for the exporter: what is kept shall be of one size
  }
  {
    Shard& shard = shards[shard_of_this_thread()];
    const std::scoped_lock lock(shard.mutex);
    slot->chunk->outcome[slot->index].store(outcome, std::memory_order_relaxed);
    slot->chunk->state[slot->index].store(SlotState::kEnded, std::memory_order_relaxed);
    ++shard.ended_count[static_cast<std::size_t>(outcome)];
    slot->ended_ns = now.time_since_epoch().count();
    slot->duration_us = copy.duration_us;
    shard.ended.push(slot);
    shard.publish_oldest();
  }
  latest_kept.fetch_add(1, std::memory_order_relaxed);
  evict();
  for (WaybillSink* sink : sinks) sink->closed(copy);
}

// --- forgetting
// ------------------------------------------------------------------------------------------------

void WaybillBook::Impl::evict() noexcept {
  // A little more than asked for may stay, so that shards look at each other only now and then.
  constexpr std::size_t kSlack = 64;
  if (latest_kept.load(std::memory_order_relaxed) < options.keep + kSlack) return;
  Shard* oldest = &shards[0];
  for (Shard& shard : shards) {
    if (shard.oldest_ns.load(std::memory_order_relaxed) < oldest->oldest_ns.load(std::memory_order_relaxed))
      oldest = &shard;
  }
  std::array<WaybillSlot*, kSlack> out{};
  std::size_t n = 0;
  {
    const std::scoped_lock lock(oldest->mutex);
    while (n < kSlack && latest_kept.load(std::memory_order_relaxed) > options.keep) {
      WaybillSlot* slot = oldest->ended.pop();
      if (slot == nullptr) break;
      latest_kept.fetch_sub(1, std::memory_order_relaxed);
      out[n++] = slot;
    }
    oldest->publish_oldest();
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (WaybillSlot* unwanted = keep_longer(out[i])) release(unwanted);
  }
}

// Takes the slot if it is a failure or slow, and gives back the one that has to go instead, if any.
WaybillSlot* WaybillBook::Impl::keep_longer(WaybillSlot* slot) noexcept {
  const Outcome outcome = slot->chunk->outcome[slot->index].load(std::memory_order_relaxed);
  const std::scoped_lock lock(kept_mutex);
  if (outcome == Outcome::kCompleted)
    return slowest.offer({slot->duration_us, slot->ended_ns, slot}, options.keep_slowest);
  SlotList& list = failures[static_cast<std::size_t>(outcome)];
  list.push(slot);
  return list.size() > options.keep_per_failure ? list.pop() : nullptr;
}

WaybillSlot* SlowestSlots::offer(const Entry& entry, std::size_t limit) noexcept {
  constexpr std::int64_t kHourNs = 3'600'000'000'000;
  if (limit == 0) return entry.slot;
  if (entries_.size() < limit) {
    entries_.push_back(entry);
    return nullptr;
  }
  if (entry.duration_us <= floor_us_ && entry.ended_ns - oldest_ns_ < kHourNs) return entry.slot;
  // An entry of an hour ago gives way to anything, else the fastest to a slower one.
  auto victim = std::ranges::min_element(entries_, {}, &Entry::ended_ns);
  if (entry.ended_ns - victim->ended_ns < kHourNs)
    victim = std::ranges::min_element(entries_, {}, &Entry::duration_us);
  WaybillSlot* out = entry.slot;
  if (entry.ended_ns - victim->ended_ns >= kHourNs || entry.duration_us > victim->duration_us) {
    out = victim->slot;
    *victim = entry;
  }
  floor_us_ = std::ranges::min_element(entries_, {}, &Entry::duration_us)->duration_us;
  oldest_ns_ = std::ranges::min_element(entries_, {}, &Entry::ended_ns)->ended_ns;
  return out;
}

void WaybillBook::Impl::release(WaybillSlot* slot) noexcept {
  slot->chunk->id_high[slot->index].store(0, std::memory_order_relaxed);
  slot->chunk->request_key[slot->index].store(0, std::memory_order_relaxed);
  slot->chunk->state[slot->index].store(SlotState::kFree, std::memory_order_relaxed);
  const std::scoped_lock lock(pool_mutex);
  pool.push_front(slot);
}

// --- the book
// --------------------------------------------------------------------------------------------------

WaybillBook::WaybillBook(const WaybillBookOptions& options, const Clock& clock,
                         std::vector<WaybillSink*> sinks)
    : impl_(std::make_unique<Impl>(options, clock, std::move(sinks))) {}

WaybillBook::~WaybillBook() = default;

Waybill WaybillBook::open(std::string_view endpoint, TimePoint started) {
  return Waybill(impl_->open(endpoint, started));
}

Ledger WaybillBook::ledger() const {
  std::array<std::unique_lock<std::mutex>, Impl::kShards> locks;
  for (std::size_t i = 0; i < locks.size(); ++i) locks[i] = std::unique_lock(impl_->shards[i].mutex);
  Ledger ledger;
  for (const Impl::Shard& shard : impl_->shards) {
    ledger.accepted += shard.accepted;
    for (std::size_t i = 0; i < kOutcomes; ++i) ledger.ended[i] += shard.ended_count[i];
  }
  const std::scoped_lock pool_lock(impl_->pool_mutex);
  for (const auto& chunk : impl_->chunks) {
    for (const auto& state : chunk->state) {
      ledger.in_flight += state.load(std::memory_order_relaxed) == SlotState::kOpen ? 1U : 0U;
    }
  }
  return ledger;
}

std::size_t WaybillBook::kept() const {
  std::size_t n = impl_->latest_kept.load(std::memory_order_relaxed);
  const std::scoped_lock lock(impl_->kept_mutex);
  for (const SlotList& list : impl_->failures) n += list.size();
  return n + impl_->slowest.size();
}

std::size_t WaybillBook::memory_bytes() const {
  const std::scoped_lock lock(impl_->pool_mutex);
  return impl_->chunks.size() * sizeof(WaybillChunk);
}

void WaybillBook::refresh_wall_clock() noexcept {
  impl_->wall_offset_ns.store(wall_minus_steady(), std::memory_order_relaxed);
}

}  // namespace waybill::telemetry
