#include "embed/embedding_service.h"

#include <utility>

#include "base/check.h"
#include "embed/embedding_job.h"

namespace waybill::embed {

struct EmbeddingService::Impl {
  Impl(const Model& model, Batcher& batcher, WorkerPool& texts, const Clock& clock,
       const EmbeddingServiceOptions& o)
      : options(o), host{model, batcher, texts, clock, options, compute_here, gate} {}

  [[nodiscard]] std::optional<Error> refused_at_once(const EmbeddingCall& call, TimePoint now) const;
  std::unexpected<Error> refuse(Error error) {
    counts->count(error.code);
    return std::unexpected(std::move(error));
  }

  const EmbeddingServiceOptions options;
  InlineExecutor compute_here;
  const std::shared_ptr<EmbeddingCounts> counts = std::make_shared<EmbeddingCounts>();
  Gate gate;  // of calls under way
  EmbeddingHost host;
};

EmbeddingService::EmbeddingService(const Model& model, Batcher& batcher, WorkerPool& texts,
                                   const Clock& clock, const EmbeddingServiceOptions& options)
    : impl_(std::make_unique<Impl>(model, batcher, texts, clock, options)) {}

EmbeddingService::~EmbeddingService() { stop(); }

const Model& EmbeddingService::model() const noexcept { return impl_->host.model; }

Duration EmbeddingService::predicted_wait(std::size_t tokens) const noexcept {
  return impl_->host.batcher.predicted_wait(tokens);
}

std::optional<Result<EmbeddingAnswer>> EmbeddingService::embed(const EmbeddingCall& call, Completion&& done) {
  WAYBILL_CHECK(call.executor != nullptr && done != nullptr);
  Impl& s = *impl_;
  const TimePoint arrived = s.host.clock.now();
  if (auto error = s.refused_at_once(call, arrived)) return s.refuse(*std::move(error));
  if (!s.gate.enter())
    return s.refuse(
        {.code = ErrorCode::kShuttingDown, .message = "the encoder is shutting down", .field = {}});
  std::size_t bytes = 0;
  for (const EmbeddingInput& input : call.inputs) {
    if (const auto* text = std::get_if<std::string_view>(&input)) bytes += text->size();
  }
  auto job = std::make_unique<EmbeddingJob>(s.host, s.counts, call, std::move(done), arrived);
  if (call.inputs.size() <= kFewInputs && bytes <= s.options.long_text) {
    EmbeddingJob* const running = job.release();
    if (!running->pump()) return std::nullopt;  // owns itself
    job.reset(running);
    Result<EmbeddingAnswer> answer = job->take_answer();
    done = job->take_done();
    s.gate.leave();
    return answer;
  }
  if (s.host.texts.post([raw = job.get()] { raw->pump_and_finish(); })) {
    (void)job.release();  // owns itself
    return std::nullopt;
  }
  done = job->take_done();
  s.gate.leave();
  return s.refuse({.code = ErrorCode::kOverloaded,
                   .message = "too many long texts wait to be read; send them again later",
                   .field = {},
                   .retry_after = s.host.texts.predicted_wait()});
}

std::optional<Error> EmbeddingService::Impl::refused_at_once(const EmbeddingCall& call, TimePoint now) const {
  const auto error = [](ErrorCode code, std::string message) {
    return Error{.code = code, .message = std::move(message), .field = {}};
  };
  if (call.inputs.empty())
    return Error{.code = ErrorCode::kInvalidInput,
                 .message = "there is no input; send at least one text",
                 .field = "input"};
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (const auto* ids = std::get_if<std::span<const TokenId>>(&call.inputs[i])) {
      if (auto wrong = wrong_ids(host.model, *ids, i)) return wrong;
    }
  }
  if (call.cancelled != nullptr && call.cancelled->load(std::memory_order_acquire))
    return error(ErrorCode::kCancelled, "cancelled before it was read");
  if (call.deadline <= now)
    return error(ErrorCode::kDeadlineExceeded, "the deadline passed before the input was read");
  return std::nullopt;
}

void EmbeddingService::stop() {
  impl_->gate.close();
  impl_->gate.wait();
}

EmbeddingStats EmbeddingService::stats() const {
  const EmbeddingCounts& counts = *impl_->counts;
  const auto value = [](const std::atomic<std::uint64_t>& count) {
    return count.load(std::memory_order_relaxed);
  };
  return {.batcher = impl_->host.batcher.stats(),
          .calls = value(counts.calls),
          .inputs = value(counts.inputs),
          .refused = value(counts.refused),
          .expired = value(counts.expired),
          .cancelled = value(counts.cancelled),
          .stopped = value(counts.stopped),
          .failed = value(counts.failed),
          .completions_threw = value(counts.threw)};
}

}  // namespace waybill::embed
