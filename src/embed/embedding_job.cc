#include "embed/embedding_job.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace waybill::embed {
namespace {

bool has_specials(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
  return ids.size() >= 2 && ids.front() == tokenizer.cls_id() && ids.back() == tokenizer.sep_id();
}

Error shutting_down() {
  return {.code = ErrorCode::kShuttingDown, .message = "the encoder is shutting down", .field = {}};
}

}  // namespace

// Delivers the answer when run, and also when it is destroyed unrun.
class EmbeddingJobAnswer {
 public:
  explicit EmbeddingJobAnswer(EmbeddingJob& job) noexcept : job_(&job) {}
  EmbeddingJobAnswer(EmbeddingJobAnswer&& other) noexcept : job_(std::move(other.job_)) {}
  EmbeddingJobAnswer& operator=(EmbeddingJobAnswer&&) = delete;
  ~EmbeddingJobAnswer() {
    if (job_) job_->deliver(true);
  }

  void operator()() noexcept {
    job_->deliver(false);
    job_.reset();
  }

 private:
  std::unique_ptr<EmbeddingJob> job_;
};

void EmbeddingCounts::count(ErrorCode code) noexcept {
  const auto add = [](std::atomic<std::uint64_t>& count) { count.fetch_add(1, std::memory_order_relaxed); };
  switch (code) {
    case ErrorCode::kOverloaded:
      return add(refused);
    case ErrorCode::kDeadlineExceeded:
      return add(expired);
    case ErrorCode::kCancelled:
      return add(cancelled);
    case ErrorCode::kShuttingDown:
      return add(stopped);
    default:
      return add(failed);
  }
}

std::optional<Error> wrong_ids(const Model& model, std::span<const TokenId> ids, std::size_t input) {
  const auto wrong = [input](std::string message) {
    return Error{.code = ErrorCode::kInvalidInput,
                 .message = std::move(message),
                 .field = fmt::format("input[{}]", input)};
  };
  const Tokenizer& tokenizer = model.tokenizer();
  const std::size_t most = model.config().max_tokens - (has_specials(tokenizer, ids) ? 0 : 2);
  if (ids.empty()) return wrong(fmt::format("input[{}] has no token ids; send at least one", input));
  if (ids.size() > most) {
    return wrong(
        fmt::format("input[{}] has {} token ids, and the model takes {}; cut it, or send the text itself",
                    input, ids.size(), most));
  }
  const auto size = tokenizer.vocabulary_size();
  const auto found = std::ranges::find_if(
      ids, [size](TokenId id) { return id < 0 || static_cast<std::size_t>(id) >= size; });
  if (found == ids.end()) return std::nullopt;
  return wrong(fmt::format(
      "input[{}] has the token id {}, and the model's vocabulary ends at {}; send ids of this model's "
      "tokenizer, or the text itself",
      input, *found, size - 1));
}

EmbeddingJob::EmbeddingJob(EmbeddingHost& host, std::shared_ptr<EmbeddingCounts> counts,
                           const EmbeddingCall& call, EmbeddingService::Completion&& done, TimePoint arrived)
    : host_(host), counts_(std::move(counts)), call_(call) {
  answer_.dim = host.model.dim();
  answer_.embeddings.resize(call.inputs.size() * answer_.dim);
  answer_.tokens.resize(call.inputs.size());
  answer_.timing.arrived = arrived;
  if (host.options.text.long_text == LongText::kWindows) inputs_.resize(call.inputs.size());
  done_ = std::move(done);
}

bool EmbeddingJob::pump() {
  for (;;) {
    std::size_t i = 0;
    {
      const std::lock_guard lock(mutex_);
      const bool over = error_ || next_ == call_.inputs.size();
      if (over || tokens_in_flight_ >= host_.options.max_tokens_in_flight) {
        pumping_ = false;
        return over && items_in_flight_ == 0;  // else window_answered() goes on
      }
      i = next_;
    }
    Status status = begin(i);
    const std::lock_guard lock(mutex_);
    if (status) {
      ++next_;
      if (next_ == call_.inputs.size()) answer_.timing.tokenized = host_.clock.now();
      continue;
    }
    // What is in flight makes room when it is done.
    if (status.error().code == ErrorCode::kOverloaded && items_in_flight_ != 0) {
      pumping_ = false;
      return false;
    }
    if (!error_) error_ = std::move(status.error());
  }
}

Status EmbeddingJob::begin(std::size_t i) {
  if (host_.gate.closed()) return std::unexpected(shutting_down());
  if (call_.cancelled != nullptr && call_.cancelled->load(std::memory_order_acquire))
    return fail(ErrorCode::kCancelled, "cancelled before all of it was read");
  if (call_.deadline <= host_.clock.now())
    return fail(ErrorCode::kDeadlineExceeded, "the deadline passed before all of the input was read");
  const Tokenizer& tokenizer = host_.model.tokenizer();
  ids_.clear();
  offsets_.assign(1, 0);
  if (const auto* text = std::get_if<std::string_view>(&call_.inputs[i])) {
    tokenize(tokenizer, host_.model.config(), *text, host_.options.text, ids_, offsets_);
  } else {
    const auto ids = std::get<std::span<const TokenId>>(call_.inputs[i]);
    const bool whole = has_specials(tokenizer, ids);
    if (!whole) ids_.push_back(tokenizer.cls_id());
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    if (!whole) ids_.push_back(tokenizer.sep_id());
    offsets_.push_back(static_cast<std::uint32_t>(ids_.size()));
  }
  const std::size_t count = offsets_.size() - 1;
  std::vector<Batcher::Item> items;
  items.reserve(count);
  for (std::uint32_t w = 0; w < count; ++w) {
    const std::uint32_t tokens = offsets_[w + 1] - offsets_[w];
    items.push_back({.ids = std::span(ids_).subspan(offsets_[w], tokens),
                     .deadline = call_.deadline,
                     .max_wait = i == 0 ? host_.options.max_wait : Duration::max(),  // admitted once
                     .executor = &host_.compute_here,
                     .cancelled = call_.cancelled,
                     .done = [this, input = static_cast<std::uint32_t>(i), w, tokens](
                                 Result<std::span<const float>> embedding, const BatchTiming& timing) {
                       window_answered(input, w, tokens, std::move(embedding), timing);
                     }});
  }
  answer_.tokens[i] = static_cast<std::uint32_t>(ids_.size());
  if (count > 1) {
    Input& input = inputs_[i];
    input.windows.resize(count * answer_.dim);
    input.lengths.clear();
    for (std::size_t w = 0; w < count; ++w) input.lengths.push_back(offsets_[w + 1] - offsets_[w] - 2);
    input.to_come = count;
  }
  {
    const std::lock_guard lock(mutex_);  // before they are queued, for their answers may come at once
    items_in_flight_ += count;
    tokens_in_flight_ += ids_.size();
  }
  Status status = host_.batcher.submit(std::span(items));
  if (!status) {
    const std::lock_guard lock(mutex_);
    items_in_flight_ -= count;
    tokens_in_flight_ -= ids_.size();
  }
  return status;
}

void EmbeddingJob::window_answered(std::uint32_t input, std::uint32_t window, std::uint32_t tokens,
                                   Result<std::span<const float>> embedding,
                                   const BatchTiming& timing) noexcept {
  const std::size_t dim = answer_.dim;
  const auto row = std::span(answer_.embeddings).subspan(input * dim, dim);
  const bool several = !inputs_.empty() && !inputs_[input].lengths.empty();
  const auto target = several ? std::span(inputs_[input].windows).subspan(window * dim, dim) : row;
  if (embedding) std::ranges::copy(*embedding, target.begin());
  bool resume = false;
  {
    const std::lock_guard lock(mutex_);
    if (embedding) {
      EmbeddingTiming& all = answer_.timing;
      if (all.queued == TimePoint{} || timing.queued < all.queued) all.queued = timing.queued;
      if (all.started == TimePoint{} || timing.started < all.started) all.started = timing.started;
      all.finished = std::max(all.finished, timing.finished);
      // Under the lock, so that whoever finishes the job sees the average; windows are rare.
      if (several && --inputs_[input].to_come == 0)
        average_windows(inputs_[input].windows, inputs_[input].lengths, row);
    } else if (!error_) {
      error_ = std::move(embedding.error());
    }
    --items_in_flight_;
    tokens_in_flight_ -= tokens;
    if (pumping_) return;
    const bool over = error_ || next_ == call_.inputs.size();
    if (!over && tokens_in_flight_ <= host_.options.max_tokens_in_flight / 2) {
      pumping_ = true;
      resume = true;
    } else if (!over || items_in_flight_ != 0) {
      return;
    }
  }
  if (!resume) return finish();
  if (host_.texts.resume([this] { pump_and_finish(); })) return;
  {
    const std::lock_guard lock(mutex_);
    pumping_ = false;
    if (!error_) error_ = shutting_down();
    if (items_in_flight_ != 0) return;
  }
  finish();
}

void EmbeddingJob::finish() noexcept {
  Gate& gate = host_.gate;
  Executor& executor = *call_.executor;
  try {
    executor.post(EmbeddingJobAnswer(*this));
  } catch (...) {
    // The task has been destroyed on the way here, and so has answered.
  }
  gate.leave();
}

Result<EmbeddingAnswer> EmbeddingJob::take_answer() noexcept {
  if (error_) {
    counts_->count(error_->code);
    return std::unexpected(*std::move(error_));
  }
  counts_->calls.fetch_add(1, std::memory_order_relaxed);
  counts_->inputs.fetch_add(answer_.tokens.size(), std::memory_order_relaxed);
  return std::move(answer_);
}

void EmbeddingJob::deliver(bool dropped) noexcept {
  if (dropped)
    error_ =
        Error{.code = ErrorCode::kShuttingDown, .message = "the executor dropped the answer", .field = {}};
  try {
    done_(take_answer());
  } catch (...) {
    counts_->threw.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace waybill::embed
