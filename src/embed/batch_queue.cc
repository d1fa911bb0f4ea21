#include "embed/batch_queue.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

namespace waybill::embed {
namespace {

// The part of a ring that starts at `position`, in one or two pieces.
template <class T>
std::pair<std::span<T>, std::span<T>> pieces_of(std::span<T> ring, std::size_t position, std::size_t length) {
  const std::size_t begin = position & (ring.size() - 1);
  const std::size_t straight = std::min(length, ring.size() - begin);
  return {ring.subspan(begin, straight), ring.first(length - straight)};
}

}  // namespace

void BatchQueue::reserve(std::size_t items, std::size_t tokens) {
  if (items_ + items > entries_.size()) grow_entries(items_ + items);
  if (tokens_ + tokens > ids_.size()) grow_ids(tokens_ + tokens);
}

void BatchQueue::push(Batcher::Item& item, TimePoint now) noexcept {
  const std::size_t tokens = item.ids.size();
  const auto [straight, wrapped] = pieces_of(std::span(ids_), first_id_ + tokens_, tokens);
  std::ranges::copy(item.ids.first(straight.size()), straight.begin());
  std::ranges::copy(item.ids.subspan(straight.size()), wrapped.begin());
  Entry& entry = entries_[(first_item_ + items_) & (entries_.size() - 1)];
  entry.answer.executor = item.executor;
  entry.answer.done = std::move(item.done);
  entry.answer.timing = {.queued = now};
  entry.deadline = item.deadline;
  entry.cancelled = item.cancelled;
  entry.context = item.context;
  entry.tokens = tokens;
  ++items_;
  tokens_ += tokens;
}

BatchQueue::Taken BatchQueue::take(Batch& batch, std::size_t share, std::size_t max_tokens, TimePoint now) {
  Taken taken;
  while (!empty() && !batch.full()) {
    Entry& entry = front();
    if (entry.cancelled != nullptr && entry.cancelled->load(std::memory_order_acquire)) {
      batch.add_dropped(std::move(entry.answer), Fate::kCancelled);
      ++taken.cancelled;
    } else if (entry.deadline <= now) {
      batch.add_dropped(std::move(entry.answer), Fate::kExpired);
      ++taken.expired;
    } else {
      const std::size_t have = batch.tokens();
      // The next item comes along if that brings the batch nearer to its share.
      if (have != 0 &&
          (have + entry.tokens > max_tokens || have >= share || entry.tokens > 2 * (share - have)))
        break;
      const auto [straight, wrapped] = pieces_of(std::span<const TokenId>(ids_), first_id_, entry.tokens);
      batch.add(std::move(entry.answer), entry.context, straight, wrapped);
    }
    pop_front();
  }
  return taken;
}

std::size_t BatchQueue::take_stopped(Batch& batch) {
  std::size_t taken = 0;
  for (; !empty() && !batch.full(); ++taken) {
    batch.add_dropped(std::move(front().answer), Fate::kStopped);
    pop_front();
  }
  return taken;
}

void BatchQueue::pop_front() noexcept {
  const std::size_t tokens = front().tokens;
  ++first_item_;
  --items_;
  first_id_ += tokens;
  tokens_ -= tokens;
}

void BatchQueue::grow_entries(std::size_t items) {
  std::vector<Entry> larger(std::bit_ceil(std::max<std::size_t>(64, items)));
  for (std::size_t i = 0; i < items_; ++i) {
    larger[i] = std::move(entries_[(first_item_ + i) & (entries_.size() - 1)]);
  }
  entries_ = std::move(larger);
  first_item_ = 0;
}

void BatchQueue::grow_ids(std::size_t tokens) {
  std::vector<TokenId> larger(std::bit_ceil(std::max<std::size_t>(1024, tokens)));
  if (tokens_ != 0) {
    const auto [straight, wrapped] = pieces_of(std::span<const TokenId>(ids_), first_id_, tokens_);
    std::ranges::copy(wrapped, std::ranges::copy(straight, larger.begin()).out);
  }
  ids_ = std::move(larger);
  first_id_ = 0;
}

}  // namespace waybill::embed
