// One call of the embedding service until it has been answered. Internal to the service.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/gate.h"
#include "base/result.h"
#include "embed/embedding_service.h"

namespace waybill::embed {

// How calls ended. Shared by the service and the answers that are still with an executor.
struct EmbeddingCounts {
  std::atomic<std::uint64_t> calls{0}, inputs{0};
  std::atomic<std::uint64_t> refused{0}, expired{0}, cancelled{0}, stopped{0}, failed{0}, threw{0};

  void count(ErrorCode code) noexcept;
};

// What a job needs of its service.
struct EmbeddingHost {
  const Model& model;
  Batcher& batcher;
  WorkerPool& texts;
  const Clock& clock;
  const EmbeddingServiceOptions& options;
  InlineExecutor& compute_here;
  Gate& gate;  // which the job leaves when it will not touch the host again
};

// Why ids cannot be encoded, or empty.
[[nodiscard]] std::optional<Error> wrong_ids(const Model& model, std::span<const TokenId> ids,
                                             std::size_t input);

// One thread at a time reads inputs (pump()); computing threads bring embeddings and have the pump go on when
// half of what may be in flight is done. Owns itself once somebody else may answer it.
class EmbeddingJob {
 public:
  EmbeddingJob(EmbeddingHost& host, std::shared_ptr<EmbeddingCounts> counts, const EmbeddingCall& call,
               EmbeddingService::Completion&& done, TimePoint arrived);

  // Reads until enough is in flight; true when the job is over and the caller has to finish() it.
  [[nodiscard]] bool pump();
  void pump_and_finish() {
    if (pump()) finish();
  }
  void finish() noexcept;  // posts the answer; deletes this

  // Of a job that is over, instead of finish().
  [[nodiscard]] Result<EmbeddingAnswer> take_answer() noexcept;
  [[nodiscard]] EmbeddingService::Completion take_done() noexcept { return std::move(done_); }

 private:
  friend class EmbeddingJobAnswer;
  struct Input {
    std::vector<std::uint32_t> lengths;  // several windows: word pieces of each
    std::vector<float> windows;          // several windows: [windows, dim]
    std::size_t to_come = 0;             // guarded by mutex_
  };

  // Tokenizes input i and queues its sequences.
  [[nodiscard]] Status begin(std::size_t i);
  void window_answered(std::uint32_t input, std::uint32_t window, std::uint32_t tokens,
                       Result<std::span<const float>> embedding, const BatchTiming& timing) noexcept;
  void deliver(bool dropped) noexcept;

  EmbeddingHost& host_;
  const std::shared_ptr<EmbeddingCounts> counts_;
  const EmbeddingCall call_;
  EmbeddingService::Completion done_;
  EmbeddingAnswer answer_;              // each row is written by the one thread that has it
  std::vector<Input> inputs_;           // empty unless texts may become several windows
  std::vector<TokenId> ids_;            // scratch of the pump
  std::vector<std::uint32_t> offsets_;  // scratch of the pump

  std::mutex mutex_;  // guards the rest
  std::size_t next_ = 0;
  std::size_t items_in_flight_ = 0, tokens_in_flight_ = 0;
  bool pumping_ = true;
  std::optional<Error> error_;
};

}  // namespace waybill::embed
