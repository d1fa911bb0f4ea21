#include "embed/batch.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/check.h"

namespace waybill::embed {

// Delivers one answer when run, and also when it is destroyed unrun. Small enough to live inside a
// std::move_only_function without an allocation.
class AnswerTask {
 public:
  explicit AnswerTask(Answer& answer) noexcept : answer_(&answer) {}
  AnswerTask(AnswerTask&& other) noexcept : answer_(std::exchange(other.answer_, nullptr)) {}
  AnswerTask& operator=(AnswerTask&&) = delete;
  ~AnswerTask() { deliver(true); }

  void operator()() noexcept { deliver(false); }

 private:
  void deliver(bool dropped) noexcept {
    if (Answer* answer = std::exchange(answer_, nullptr)) answer->batch->deliver(*answer, dropped);
  }
  Answer* answer_;
};
static_assert(sizeof(AnswerTask) <= sizeof(void*));

namespace {

// An error without its sentence is better than no answer when memory has run out.
std::unexpected<Error> failure(ErrorCode code, std::string_view message) noexcept {
  try {
    return fail(code, std::string(message));
  } catch (...) {
    return std::unexpected<Error>(Error{code, {}, {}});
  }
}

}  // namespace

Batch::Batch(std::size_t max_tokens, std::size_t dim)
    : dim_(dim),
      max_answers_(std::max<std::size_t>(max_tokens, 64)),
      out_(std::make_unique_for_overwrite<float[]>(max_tokens * dim)) {  // a sequence has at least one token
  ids_.reserve(max_tokens);
  offsets_.reserve(max_tokens + 1);
  contexts_.reserve(max_tokens);
  answers_.reserve(max_answers_);
}

void Batch::add(Answer&& answer, void* context, std::span<const TokenId> ids,
                std::span<const TokenId> more_ids) {
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  ids_.insert(ids_.end(), more_ids.begin(), more_ids.end());
  answer.row = static_cast<std::uint32_t>(sequences());
  contexts_.push_back(context);
  offsets_.push_back(static_cast<std::uint32_t>(ids_.size()));
  add_dropped(std::move(answer), Fate::kComputed);
}

void Batch::add_dropped(Answer&& answer, Fate fate) {
  WAYBILL_CHECK(!full());
  answer.batch = this;
  answer.fate = fate;
  answers_.push_back(std::move(answer));
  holds_.fetch_add(1, std::memory_order_relaxed);
}

void Batch::post(Answer& answer) {
  try {
    answer.executor->post(AnswerTask(answer));
  } catch (...) {
    // The task has been destroyed on the way here, and so has answered.
  }
}

void Batch::post_dropped() {
  for (Answer& answer : answers_) {
    if (answer.fate != Fate::kComputed) post(answer);
  }
}

void Batch::post_computed(TimePoint started, TimePoint finished) {
  const auto tokens = static_cast<std::uint32_t>(ids_.size());
  const auto count = static_cast<std::uint32_t>(sequences());
  for (Answer& answer : answers_) {
    if (answer.fate != Fate::kComputed) continue;
    answer.timing = {answer.timing.queued, started, finished, tokens, count};
    post(answer);
  }
}

void Batch::post_failed(TimePoint started, TimePoint finished, std::string reason) {
  failure_ = std::move(reason);
  for (Answer& answer : answers_) {
    if (answer.fate != Fate::kComputed) continue;
    answer.fate = Fate::kFailed;
    answer.timing.started = started;
    answer.timing.finished = finished;
    post(answer);
  }
}

void Batch::release() noexcept {
  if (holds_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::shared_ptr<BatchPool> pool = std::move(pool_);
  pool->give_back(this);
}

void Batch::deliver(Answer& answer, bool dropped_by_executor) noexcept {
  Batcher::Completion done = std::move(answer.done);
  try {
    done(result_of(answer, dropped_by_executor), answer.timing);
  } catch (...) {
    pool_->threw_.fetch_add(1, std::memory_order_relaxed);
  }
  done = nullptr;  // what it holds goes before the answer counts as given
  pool_->answered_.fetch_add(1, std::memory_order_release);
  release();
}

Result<std::span<const float>> Batch::result_of(const Answer& answer,
                                                bool dropped_by_executor) const noexcept {
  if (dropped_by_executor)
    return failure(ErrorCode::kShuttingDown, "the executor of the request dropped its answer");
  switch (answer.fate) {
    case Fate::kComputed:
      return std::span<const float>(out_.get() + answer.row * dim_, dim_);
    case Fate::kFailed:
      return failure(ErrorCode::kInternal, failure_);
    case Fate::kExpired:
      return failure(ErrorCode::kDeadlineExceeded,
                     "the deadline passed while the text waited to be embedded");
    case Fate::kCancelled:
      return failure(ErrorCode::kCancelled, "cancelled while it waited to be embedded");
    case Fate::kStopped:
      break;
  }
  return failure(ErrorCode::kShuttingDown, "the encoder is shutting down");
}

Batch* BatchPool::acquire() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    free_.reserve(batches_.size() + 1);
    batches_.push_back(std::make_unique<Batch>(max_tokens_, dim_));
    free_.push_back(batches_.back().get());
  }
  Batch* batch = free_.back();
  free_.pop_back();
  batch->ids_.clear();
  batch->offsets_.resize(1);
  batch->contexts_.clear();
  batch->answers_.clear();
  batch->failure_.clear();
  batch->holds_.store(1, std::memory_order_relaxed);
  batch->pool_ = shared_from_this();
  return batch;
}

void BatchPool::give_back(Batch* batch) noexcept {
  const std::lock_guard lock(mutex_);
  free_.push_back(batch);
}

}  // namespace waybill::embed
