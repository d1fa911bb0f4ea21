// Decisions under deadlines, for callers that must not block: the router, its batcher, and the rules of
// admission.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/result.h"
#include "base/worker_pool.h"
#include "embed/batcher.h"
#include "embed/model.h"
#include "route/decision.h"
#include "route/router.h"

namespace waybill::route {

// When, by whom and how an answer is wanted.
struct CallOptions {
  TimePoint deadline = TimePoint::max();
  Executor* executor = nullptr;  // where `done` runs; lives until the answer
  const std::atomic<bool>* cancelled =
      nullptr;                 // read when its turn comes; may be null; lives until the answer
  bool allow_degraded = true;  // the static tier may decide alone when the encoder cannot in time
};

struct DecisionCall {
  std::string_view prompt;  // stays valid until the answer
  TimePoint deadline = TimePoint::max();
  Executor* executor = nullptr;
  const std::atomic<bool>* cancelled = nullptr;
  bool allow_degraded = true;
};

// Zero: the stage was not reached.
struct DecisionTiming {
  TimePoint arrived{};              // at the service
  TimePoint tokenized{};            // the cheap tiers did not know
  TimePoint queued{};               // in the batcher
  TimePoint started{}, finished{};  // of the batch
  TimePoint decided{};
  std::uint32_t tokens = 0;  // of the prompt, all windows together
  std::uint32_t batch_tokens = 0, batch_sequences = 0;
};

// Views point into the router: keep the engine until the answer has been used.
struct DecisionAnswer {
  Decision decision;
  DecisionTiming timing;
};

struct ExplanationAnswer {
  Explanation explanation;
  DecisionTiming timing;
};

struct ExplainOptions {
  std::optional<Tier> tier = {};  // kStatic or kEncoder forces one
  std::size_t nearest = 3, runners_up = 3;
};

// One batch that was computed, for histograms.
struct ComputedBatch {
  std::size_t sequences = 0, tokens = 0;
  std::size_t rechecked = 0;  // sequences that the exact model encoded too
  double seconds = 0;         // encoding, deciding and rechecking
};

struct DecisionServiceOptions {
  embed::BatcherOptions batcher;
  Duration max_wait = Duration::max();  // predicted; what would wait longer is degraded or refused
  // Longer prompts (bytes) are read on the text threads and not on the caller's.
  std::size_t long_prompt = 16U << 10;
  // Called after each batch, on its computing thread; must be quick and not throw.
  std::function<void(const ComputedBatch&)> observer = {};
};

struct DecisionStats {
  embed::BatcherStats batcher;
  RouterCounts decisions;
  ExactCacheStats cache;
  Duration predicted_wait{};   // of a prompt of kTypicalTokens that came now
  std::uint64_t refused = 0;   // kOverloaded
  std::uint64_t degraded = 0;  // decided by the static tier alone
  std::uint64_t expired = 0, cancelled = 0, stopped = 0, failed = 0;  // answered so, wherever it was noticed
  std::uint64_t completions_threw = 0;
  std::size_t waiting_texts = 0;  // long prompts and batches that wait for a text thread
};

// decide() answers at once, without calling `done`, when a cheap tier decides; when the static tier steps in
// because the encoder's predicted wait is longer than min(deadline, max_wait) allows (`degraded`); and when
// it must refuse: kOverloaded (`Error::retry_after` is the predicted wait), kDeadlineExceeded, kCancelled,
// kShuttingDown. `done` is then as it was. Else it returns nothing, and `done` is called exactly once through
// the executor: with the decision, or with kDeadlineExceeded (expired while it waited), kCancelled (taken
// back while it waited; not computed), kShuttingDown, kInternal, or what else a prompt that was read on a
// text thread may be refused with. An executor that throws or drops its work makes the answer kShuttingDown,
// given where it was dropped.
//
// Scoring and rechecking of close calls happen on the batcher's computing threads, within the batch, so that
// measured speed and predicted waits include them. The caller's thread does what the cheap tiers do (some 10
// to 50 us); nothing is allocated by a call once all has grown to the load, but for sentences of refusals.
//
// All functions are thread-safe, and may be called from `done` (but for stop()).
class DecisionService {
 public:
  using Completion = std::move_only_function<void(Result<DecisionAnswer>)>;
  using BatchCompletion = std::move_only_function<void(Result<std::vector<DecisionAnswer>>)>;
  using ExplanationCompletion = std::move_only_function<void(Result<ExplanationAnswer>)>;

  static constexpr std::size_t kTypicalTokens = 32;

  // All must outlive the service; `model` is the one that the router was loaded with.
  DecisionService(const Router& router, const embed::Model& model, WorkerPool& texts, const Clock& clock,
                  const DecisionServiceOptions& options = {});
  ~DecisionService();  // stop()
  DecisionService(const DecisionService&) = delete;
  DecisionService& operator=(const DecisionService&) = delete;

  [[nodiscard]] std::optional<Result<DecisionAnswer>> decide(const DecisionCall& call, Completion&& done);

  // Many prompts: all answers in order, or the first failure. Always read on a text thread and fed to the
  // encoder a little at a time, so that others get their turn; each prompt is admitted, and degraded, by
  // itself. The prompts stay valid until the answer.
  [[nodiscard]] std::optional<Result<std::vector<DecisionAnswer>>> decide_all(
      std::span<const std::string_view> prompts, const CallOptions& call, BatchCompletion&& done);

  // The decision with its reasons, always computed (never from the exact cache) and not counted. When the
  // encoder cannot answer in time: the degraded decision alone, if allowed.
  [[nodiscard]] std::optional<Result<ExplanationAnswer>> explain(const DecisionCall& call,
                                                                 const ExplainOptions& options,
                                                                 ExplanationCompletion&& done);

  [[nodiscard]] Duration predicted_wait(std::size_t tokens = kTypicalTokens) const noexcept;
  [[nodiscard]] DecisionStats stats() const;

  // The queue in front of the model that was given, for plain embeddings by it (items without context).
  [[nodiscard]] embed::Batcher& batcher() noexcept;

  // Takes no more calls; answers those that wait with kShuttingDown; waits for the batches that run. Not to
  // be called on a computing or text thread.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill::route
