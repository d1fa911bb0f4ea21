// One batch on its way through a computing thread, and the answers to its items. Internal to the batcher.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "embed/batcher.h"
#include "embed/model.h"

namespace waybill::embed {

class Batch;
class BatchPool;

enum class Fate : std::uint8_t { kComputed, kFailed, kExpired, kCancelled, kStopped };

// What an item needs until it has been answered.
struct Answer {
  Batch* batch = nullptr;
  Executor* executor = nullptr;
  Batcher::Completion done;
  BatchTiming timing;
  Fate fate = Fate::kComputed;
  std::uint32_t row = 0;  // of the batch's output, when computed
};

// Items taken from the queue together: those to compute, packed, and those that are only to be answered.
// Filled and posted by one thread; it returns to its pool when the last of its answers has been delivered, on
// whichever thread that happens.
class Batch {
 public:
  Batch(std::size_t max_tokens, std::size_t dim);

  [[nodiscard]] bool full() const noexcept { return answers_.size() == max_answers_; }
  [[nodiscard]] std::size_t sequences() const noexcept { return offsets_.size() - 1; }
  [[nodiscard]] std::size_t tokens() const noexcept { return ids_.size(); }
  [[nodiscard]] std::size_t items() const noexcept { return answers_.size(); }
  [[nodiscard]] PackedBatch packed() const noexcept { return {ids_, offsets_}; }
  [[nodiscard]] std::span<void* const> contexts() const noexcept { return contexts_; }
  [[nodiscard]] std::span<float> out() noexcept { return {out_.get(), sequences() * dim_}; }

  // The ids of an item come in one or two parts (they may wrap around the end of the queue's ring).
  void add(Answer&& answer, void* context, std::span<const TokenId> ids, std::span<const TokenId> more_ids);
  void add_dropped(Answer&& answer, Fate fate);  // not full()

  // Posts the answers that need no computing. Called once, before post_computed().
  void post_dropped();
  // Posts the others: with their embedding, or as failed with what the batch function said.
  void post_computed(TimePoint started, TimePoint finished);
  void post_failed(TimePoint started, TimePoint finished, std::string reason);
  // The filling thread is done with the batch and must not touch it again.
  void release() noexcept;

 private:
  friend class BatchPool;
  friend class AnswerTask;
  void post(Answer& answer);
  void deliver(Answer& answer, bool dropped_by_executor) noexcept;
  [[nodiscard]] Result<std::span<const float>> result_of(const Answer& answer,
                                                         bool dropped_by_executor) const noexcept;

  const std::size_t dim_;
  const std::size_t max_answers_;
  std::vector<TokenId> ids_;
  std::vector<std::uint32_t> offsets_{0};
  std::vector<void*> contexts_;  // one for each sequence
  std::unique_ptr<float[]> out_;
  std::vector<Answer> answers_;  // never grows past its reserve: tasks point into it
  std::string failure_;
  std::atomic<std::size_t> holds_{0};  // undelivered answers, and one of the thread that fills
  // Shared: an answer may be delivered when the batcher is gone.
  std::shared_ptr<BatchPool> pool_;
};

// Batches to reuse, and the count of what was answered. Thread-safe.
class BatchPool : public std::enable_shared_from_this<BatchPool> {
 public:
  BatchPool(std::size_t max_tokens, std::size_t dim) : max_tokens_(max_tokens), dim_(dim) {}

  // An empty batch, held by the caller until Batch::release().
  [[nodiscard]] Batch* acquire();

  [[nodiscard]] std::uint64_t answered() const noexcept { return answered_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t completions_threw() const noexcept {
    return threw_.load(std::memory_order_acquire);
  }

 private:
  friend class Batch;
  void give_back(Batch* batch) noexcept;

  const std::size_t max_tokens_, dim_;
  std::atomic<std::uint64_t> answered_{0}, threw_{0};
  std::mutex mutex_;
  std::vector<std::unique_ptr<Batch>> batches_;  // guarded by mutex_
  std::vector<Batch*> free_;                     // guarded by mutex_; room for all of batches_
};

}  // namespace waybill::embed
