// Batches the embedding work of many callers onto a few computing threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/result.h"
#include "embed/model.h"
#include "embed/tokenizer.h"

namespace waybill::embed {

// What the batcher computes with: a Model in the program, a fake in tests.
class BatchFunction {
 public:
  virtual ~BatchFunction() = default;
  [[nodiscard]] virtual std::size_t dim() const noexcept = 0;
  // Called by one computing thread at a time for each `thread` index.
  virtual void run(unsigned thread, const PackedBatch& batch, std::span<float> out) = 0;
};

struct BatcherOptions {
  unsigned threads = 0;                      // 0: one per core
  std::size_t max_batch_tokens = 128;        // what a batch takes at most; past about 128 tokens a pass gains nothing
  std::size_t max_queue_tokens = 1U << 16;   // the bound of the queue
  double initial_tokens_per_second = 20'000; // per thread, until something has been measured
};

// What happened to one item, and when. Times are zero when the stage was not reached.
struct BatchTiming {
  TimePoint queued{}, started{}, finished{};
  std::uint32_t batch_tokens = 0;     // of the batch it was computed in
  std::uint32_t batch_sequences = 0;
};

struct BatcherStats {
  std::size_t queued_tokens = 0, queued_items = 0;
  double tokens_per_second = 0;  // of all threads together, measured (EWMA over batches)
  std::uint64_t computed_items = 0, computed_tokens = 0, batches = 0;
  std::uint64_t refused = 0, expired = 0, cancelled = 0;
};

// A queue bounded in tokens, in front of computing threads. No timer: a free thread takes what is waiting, up to
// the token budget. Every item that submit() accepted is answered exactly once, through its executor: with its
// embedding, kDeadlineExceeded (dropped when it came to the front too late; it was not computed), kCancelled or
// kShuttingDown. Thread-safe. The destructor answers everything that is still queued.
class Batcher {
 public:
  // The span is valid during the call.
  using Completion = std::move_only_function<void(Result<std::span<const float>>, const BatchTiming&)>;

  struct Item {
    std::span<const TokenId> ids;            // copied by submit(); 1..max_tokens ids of one sequence
    TimePoint deadline = TimePoint::max();
    Executor* executor = nullptr;            // must outlive the batcher's answer
    const std::atomic<bool>* cancelled = nullptr;  // checked when the item comes to the front; may be null; lives until the answer
    Completion done;
  };

  Batcher(BatchFunction& function, BatcherOptions options, const Clock& clock);
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // Queues the item, or refuses at once with kOverloaded (queue full, or the predicted end is past the deadline:
  // the message says how long the wait would have been) or kShuttingDown; a refused item's `done` is not called.
  [[nodiscard]] Status submit(Item&& item);

  // How long an item of `tokens` that came now would take until its answer: (queued + tokens) / measured rate.
  [[nodiscard]] Duration predicted_wait(std::size_t tokens) const noexcept;

  // Stops taking items, answers what is queued with kShuttingDown, waits for the batches that run.
  void stop();

  [[nodiscard]] BatcherStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill::embed
