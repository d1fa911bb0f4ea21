// Embeddings under deadlines, for callers that must not block.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/result.h"
#include "base/worker_pool.h"
#include "embed/batcher.h"
#include "embed/model.h"
#include "embed/text.h"

namespace waybill::embed {

// A text, or the ids of its word pieces in the model's vocabulary. [CLS] and [SEP] are put around ids that do
// not begin and end with them.
using EmbeddingInput = std::variant<std::string_view, std::span<const TokenId>>;

struct EmbeddingCall {
  std::span<const EmbeddingInput>
      inputs;  // at least one; they and what they point to stay valid until the answer
  TimePoint deadline = TimePoint::max();
  Executor* executor = nullptr;                  // where `done` runs; lives until the answer
  const std::atomic<bool>* cancelled = nullptr;  // may be null; lives until the answer
};

// Zero: the stage was not reached.
struct EmbeddingTiming {
  TimePoint arrived{};            // at the service
  TimePoint tokenized{};          // all of it
  TimePoint queued{}, started{};  // the first sequence
  TimePoint finished{};           // the last
};

struct EmbeddingAnswer {
  std::size_t dim = 0;
  std::vector<float> embeddings;      // [inputs, dim] row-major, each of length 1 where the model normalises
  std::vector<std::uint32_t> tokens;  // that were encoded of each input, [CLS] and [SEP] counted
  EmbeddingTiming timing;
};

struct EmbeddingServiceOptions {
  TextOptions text;                     // what becomes of a text with more tokens than the model takes
  Duration max_wait = Duration::max();  // predicted, of the first sequence; refused when it would wait longer
  std::size_t max_tokens_in_flight = 512;  // of one call, in the batcher at a time
  // Calls with more bytes of text, or more inputs than kFewInputs, are read on the text threads.
  std::size_t long_text = 16U << 10;
};

struct EmbeddingStats {
  BatcherStats batcher;
  std::uint64_t calls = 0, inputs = 0;                                             // answered with embeddings
  std::uint64_t refused = 0, expired = 0, cancelled = 0, stopped = 0, failed = 0;  // calls
  std::uint64_t completions_threw = 0;
};

// Texts beyond what the model takes are cut as TextOptions say (long_text of the configuration): its head,
// its tail, its ends, or the average of windows; ids beyond it are refused, since whoever has ids has counted
// them.
//
// embed() answers at once, without calling `done`, when it refuses: kInvalidInput (`field` is "input[3]": an
// id that is not in the vocabulary, no ids, too many), kOverloaded (`retry_after`: the predicted wait),
// kDeadlineExceeded, kCancelled, kShuttingDown. Else it returns nothing, and `done` is called exactly once
// through the executor, with all embeddings or the first failure. An executor that throws or drops its work
// makes the answer kShuttingDown.
//
// A call of many inputs is fed to the batcher a little at a time, so that others get their turn. Thread-safe;
// may be called from `done` (but for stop()).
class EmbeddingService {
 public:
  using Completion = std::move_only_function<void(Result<EmbeddingAnswer>)>;

  static constexpr std::size_t kFewInputs = 4;

  // All must outlive the service. `batcher` computes with `model`; items have no context.
  EmbeddingService(const Model& model, Batcher& batcher, WorkerPool& texts, const Clock& clock,
                   const EmbeddingServiceOptions& options = {});
  ~EmbeddingService();  // stop(); the batcher must have been stopped, or still be running
  EmbeddingService(const EmbeddingService&) = delete;
  EmbeddingService& operator=(const EmbeddingService&) = delete;

  [[nodiscard]] std::optional<Result<EmbeddingAnswer>> embed(const EmbeddingCall& call, Completion&& done);

  [[nodiscard]] const Model& model() const noexcept;
  [[nodiscard]] Duration predicted_wait(std::size_t tokens) const noexcept;
  [[nodiscard]] EmbeddingStats stats() const;

  // Takes no more calls, answers those that wait with kShuttingDown when their batches are through, and
  // returns when all are answered. Not to be called on a computing or text thread.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill::embed
