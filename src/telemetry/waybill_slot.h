// Where records live: in chunks that never move, so that readers can look through them without stopping
// writers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/clock.h"
#include "telemetry/record.h"
#include "telemetry/waybill_book.h"

namespace waybill::telemetry {

enum class SlotState : std::uint8_t { kFree, kOpen, kEnded };

struct WaybillChunk;

struct WaybillSlot {
  WaybillBook::Impl* book = nullptr;  // these three are set once
  WaybillChunk* chunk = nullptr;
  std::size_t index = 0;

  WaybillSlot* next = nullptr;  // in the list that has it: free, ended or kept
  std::int64_t ended_ns = 0;    // these two are written when it ends, before it comes into a list
  std::uint64_t duration_us = 0;
  TimePoint started{};  // written at open(), then read by the owner only

  mutable std::mutex mutex;
  Record record;  // guarded by mutex: the owner writes, readers copy
};

// What a search looks at, apart from the records so that it runs through dense memory. All relaxed: a hit is
// confirmed under the lock of the slot.
struct WaybillChunk {
  static constexpr std::size_t kSlots = 64;
  std::array<std::atomic<std::uint64_t>, kSlots> id_high{};      // grows with time; 0: free
  std::array<std::atomic<std::uint64_t>, kSlots> id_low{};       // decides between ids of the same moment
  std::array<std::atomic<std::uint64_t>, kSlots> request_key{};  // hash of the caller's request id; 0: none
  std::array<std::atomic<std::uint32_t>, kSlots> route_key{};    // hash of the route; 0: none
  std::array<std::atomic<SlotState>, kSlots> state{};  // written under the lock of some shard of the book
  std::array<std::atomic<Outcome>, kSlots> outcome{};  // of ended ones
  std::array<WaybillSlot, kSlots> slots{};
};

// A list through WaybillSlot::next, oldest first.
class SlotList {
 public:
  void push(WaybillSlot* slot) noexcept {
    slot->next = nullptr;
    (last_ != nullptr ? last_->next : first_) = slot;
    last_ = slot;
    ++size_;
  }
  // For free ones: the one used last comes first, since it may still be in the caches.
  void push_front(WaybillSlot* slot) noexcept {
    slot->next = first_;
    first_ = slot;
    if (last_ == nullptr) last_ = slot;
    ++size_;
  }
  WaybillSlot* pop() noexcept {
    WaybillSlot* slot = first_;
    if (slot == nullptr) return nullptr;
    first_ = slot->next;
    if (first_ == nullptr) last_ = nullptr;
    --size_;
    return slot;
  }
  [[nodiscard]] WaybillSlot* first() const noexcept { return first_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  WaybillSlot* first_ = nullptr;
  WaybillSlot* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace waybill::telemetry
