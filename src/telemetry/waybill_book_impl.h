// The inside of the book. Locks are taken in this order: shards (by index), pool, then a slot; kept, then a
// slot.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "telemetry/waybill_slot.h"

namespace waybill::telemetry {

// The numbers, made smaller where the bytes say so.
[[nodiscard]] WaybillBookOptions fit(WaybillBookOptions options) noexcept;

// 0 only for empty text.
[[nodiscard]] std::uint64_t search_key(std::string_view text) noexcept;

// The slowest of the last hour or more.
class SlowestSlots {
 public:
  struct Entry {
    std::uint64_t duration_us = 0;
    std::int64_t ended_ns = 0;
    WaybillSlot* slot = nullptr;
  };
  // Keeps the entry, or not; the slot that is not wanted any more, if any.
  WaybillSlot* offer(const Entry& entry, std::size_t limit) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  std::vector<Entry> entries_;
  std::uint64_t floor_us_ = 0;  // of the fastest entry and of the oldest, to say no quickly
  std::int64_t oldest_ns_ = 0;
};

struct WaybillBook::Impl {
  static constexpr std::size_t kShards = 16;

  struct alignas(64) Shard {
    std::mutex mutex;
    std::uint64_t accepted = 0;
    std::array<std::uint64_t, kOutcomes> ended_count{};
    SlotList free;
    SlotList ended;
    std::atomic<std::int64_t> oldest_ns{
        std::numeric_limits<std::int64_t>::max()};  // of `ended`, written under mutex

    void publish_oldest() noexcept {
      oldest_ns.store(
          ended.first() != nullptr ? ended.first()->ended_ns : std::numeric_limits<std::int64_t>::max(),
          std::memory_order_relaxed);
    }
  };

  Impl(const WaybillBookOptions& options, const Clock& clock, std::vector<WaybillSink*> sinks);

  WaybillSlot* open(std::string_view endpoint, TimePoint started);
  void close(WaybillSlot* slot, Outcome outcome, unsigned status) noexcept;

  WaybillSlot* take_free(Shard& shard);
  void add_chunk();
  void evict() noexcept;
  WaybillSlot* keep_longer(WaybillSlot* slot) noexcept;
  void release(WaybillSlot* slot) noexcept;

  const WaybillBookOptions options;
  const Clock& clock;
  const std::vector<WaybillSink*> sinks;
  std::atomic<std::int64_t> wall_offset_ns{0};  // wall clock minus steady clock

  std::array<Shard, kShards> shards;
  std::atomic<std::size_t> latest_kept{0};

  std::mutex pool_mutex;
  std::vector<std::unique_ptr<WaybillChunk>> chunks;
  SlotList pool;

  std::mutex kept_mutex;
  std::array<SlotList, kOutcomes> failures;
  SlowestSlots slowest;
};

}  // namespace waybill::telemetry
