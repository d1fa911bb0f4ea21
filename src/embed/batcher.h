// Batches the embedding work of many callers onto a few computing threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/clock.h"
#include "base/executor.h"
#include "base/result.h"
#include "embed/model.h"
#include "embed/tokenizer.h"

namespace waybill::embed {

// What the batcher computes with: a Model in the program (model_batch_function.h), a fake in tests.
class BatchFunction {
 public:
  virtual ~BatchFunction() = default;
  [[nodiscard]] virtual std::size_t dim() const noexcept = 0;
  // out: [batch.sequences(), dim()]. Called by one computing thread at a time for each `thread` index
  // (0 .. threads - 1). What it throws is answered to the items of the batch as kInternal.
  // contexts: [batch.sequences()], the Item::context of each. Returns how many tokens it had to compute,
  // which may be fewer than the batch has: that is what speed is measured by.
  virtual std::size_t run(unsigned thread, const PackedBatch& batch, std::span<void* const> contexts,
                          std::span<float> out) = 0;
};

struct BatcherOptions {
  unsigned threads = 0;                // 0: one per core
  std::size_t max_batch_tokens = 128;  // past about 128 tokens a pass gains nothing; a longer item goes alone
  std::size_t max_queue_tokens = 1U << 16;    // the bound of the queue
  double initial_tokens_per_second = 20'000;  // per thread, until something has been measured
};

// What happened to one item, and when. Times are zero when the stage was not reached.
struct BatchTiming {
  TimePoint queued{}, started{}, finished{};
  std::uint32_t batch_tokens = 0;  // of the batch it was computed in
  std::uint32_t batch_sequences = 0;
};

// At every moment: accepted = computed + failed + expired + cancelled + stopped + queued_items +
// running_items, and answered <= the first five (equal once the executors have run what was posted to them).
struct BatcherStats {
  std::size_t queued_items = 0, queued_tokens = 0;
  std::size_t running_items = 0, running_tokens = 0;
  unsigned threads = 0, busy_threads = 0;
  double tokens_per_second = 0;  // of all threads together when all compute (see batch_cost.h)
  std::uint64_t batches = 0, computed_tokens = 0;
  std::uint64_t accepted = 0, refused = 0;
  std::uint64_t computed = 0;   // items with an embedding
  std::uint64_t failed = 0;     // the batch function threw
  std::uint64_t expired = 0;    // dropped past their deadline
  std::uint64_t cancelled = 0;  // dropped, taken back by their caller
  std::uint64_t stopped = 0;    // still queued at stop()
  std::uint64_t answered = 0;   // completions called
  std::uint64_t completions_threw = 0;
};

// A queue bounded in tokens, in front of computing threads (named embed-N). No timer: a free thread takes
// what is waiting, oldest first, up to the token budget; when several threads are free they share what waits.
// Thread-safe.
//
// Every item that submit() accepted is answered exactly once: with its embedding, kDeadlineExceeded (its turn
// came at or after its deadline; it was not computed), kCancelled, kShuttingDown (still queued at stop()) or
// kInternal (the batch function threw). The answer goes through the item's executor; an executor that throws,
// or drops the work unrun, makes the answer kShuttingDown, given where the work was dropped. Answers may come
// after the batcher has been destroyed. What a completion throws is counted and goes no further.
//
// Nothing is allocated per item once the queue and the batches have grown to the load (refusals tell a
// sentence).
class Batcher {
 public:
  // The span is valid during the call.
  using Completion = std::move_only_function<void(Result<std::span<const float>>, const BatchTiming&)>;

  struct Item {
    std::span<const TokenId> ids;  // copied by submit(); the ids of one sequence, at least one
    TimePoint deadline = TimePoint::max();
    Duration max_wait =
        Duration::max();  // refused when the predicted wait is longer; once queued it does not matter
    Executor* executor = nullptr;  // must live until the answer
    const std::atomic<bool>* cancelled =
        nullptr;              // read when the item's turn comes; may be null; lives until the answer
    void* context = nullptr;  // for the batch function; what it points to lives until the answer
    Completion done;
  };

  // `function` and `clock` must outlive the batcher. Throws only what starting a thread throws.
  Batcher(BatchFunction& function, const BatcherOptions& options, const Clock& clock);
  ~Batcher();  // stop()
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // Queues the item, or refuses at once: kOverloaded (the queue is full, or the predicted end is past the
  // deadline or max_wait; the message and `retry_after` say how long it would have taken), kDeadlineExceeded
  // (already past), kShuttingDown, kInvalidInput (no ids, or more than the queue can ever hold). A refused
  // item is left as it was and its `done` is not called.
  [[nodiscard]] Status submit(Item&& item) { return submit(std::span(&item, 1)); }
  // The same for several, one behind the other: all of them, or none. The wait is that of the last.
  [[nodiscard]] Status submit(std::span<Item> items);

  // How long an item of `tokens` that came now would take until its answer: the rest of the running batches,
  // the queue, and the batch that it would be in. Of another batcher on the same cores it knows nothing but
  // what that does to the speed of its own batches, which it follows within about thirty of them.
  [[nodiscard]] Duration predicted_wait(std::size_t tokens) const noexcept;

  // Takes no more items, answers what is queued with kShuttingDown, waits for the batches that run. May be
  // called from several threads; not from a completion that runs on a computing thread.
  void stop();

  [[nodiscard]] BatcherStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill::embed
