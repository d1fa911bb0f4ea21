// The waiting items of the batcher: a FIFO bounded in tokens. Internal to the batcher; not thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "embed/batch.h"
#include "embed/batcher.h"

namespace waybill::embed {

// Two rings, one of items and one of their ids, which double until they hold the longest queue there has
// been.
class BatchQueue {
 public:
  explicit BatchQueue(std::size_t max_tokens) : max_tokens_(max_tokens) {}

  [[nodiscard]] bool empty() const noexcept { return items_ == 0; }
  [[nodiscard]] std::size_t items() const noexcept { return items_; }
  [[nodiscard]] std::size_t tokens() const noexcept { return tokens_; }
  [[nodiscard]] bool fits(std::size_t tokens) const noexcept { return tokens <= max_tokens_ - tokens_; }

  // Makes room for so many more; nothing has changed when memory runs out.
  void reserve(std::size_t items, std::size_t tokens);
  // Copies the ids and moves the rest out of `item`, for which room has been made.
  void push(Batcher::Item& item, TimePoint now) noexcept;

  struct Taken {
    std::size_t expired = 0, cancelled = 0;  // put into the batch to be answered, not to be computed
  };
  // Moves items from the front into `batch` until it has about `share` tokens, and not more than `max_tokens`
  // unless the first item alone has more. Strictly first in, first out: letting later, shorter items fill the
  // rest would make batches larger (126 instead of 111 of 128 tokens in a simulation of mixed lengths), but a
  // token only 2 % cheaper, and long items would be overtaken.
  Taken take(Batch& batch, std::size_t share, std::size_t max_tokens, TimePoint now);

  // Moves items into `batch` as kStopped until it is full or the queue empty; returns how many.
  std::size_t take_stopped(Batch& batch);

 private:
  struct Entry {
    Answer answer;
    TimePoint deadline;
    const std::atomic<bool>* cancelled = nullptr;
    void* context = nullptr;
    std::size_t tokens = 0;
  };

  [[nodiscard]] Entry& front() noexcept { return entries_[first_item_ & (entries_.size() - 1)]; }
  void pop_front() noexcept;
  void grow_entries(std::size_t items);
  void grow_ids(std::size_t tokens);

  const std::size_t max_tokens_;
  std::vector<Entry> entries_;              // size is a power of two, or zero
  std::vector<TokenId> ids_;                // likewise
  std::size_t first_item_ = 0, items_ = 0;  // positions count on for ever; modulo the size they are indices
  std::size_t first_id_ = 0, tokens_ = 0;
};

}  // namespace waybill::embed
