#include "route/decision_call.h"

#include <utility>

#include "base/check.h"
#include "route/decision_job.h"

namespace waybill::route {

// Delivers one answer when run, and also when it is destroyed unrun. Small enough to live inside a
// std::move_only_function without an allocation.
class CallAnswer {
 public:
  explicit CallAnswer(Call& call) noexcept : call_(&call) {}
  CallAnswer(CallAnswer&& other) noexcept : call_(std::exchange(other.call_, nullptr)) {}
  CallAnswer& operator=(CallAnswer&&) = delete;
  ~CallAnswer() { deliver(true); }

  void operator()() noexcept { deliver(false); }

 private:
  void deliver(bool dropped) noexcept {
    Call* const call = std::exchange(call_, nullptr);
    if (call == nullptr) return;
    const std::shared_ptr<CallPool> pool = call->pool;
    pool->deliver(*call, dropped);
  }
  Call* call_;
};
static_assert(sizeof(CallAnswer) <= sizeof(void*));

Call* CallPool::acquire() {
  Call* call = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      free_.reserve(calls_.size() + 1);
      calls_.push_back(std::make_unique<Call>());
      free_.push_back(calls_.back().get());
    }
    call = free_.back();
    free_.pop_back();
  }
  call->timing = {};
  call->failed.store(false, std::memory_order_relaxed);
  call->decision.reset();
  call->explanation.reset();
  call->pool = shared_from_this();
  return call;
}

void CallPool::release(Call* call) noexcept {
  call->done = nullptr;
  call->explained = nullptr;
  call->job = nullptr;
  const std::shared_ptr<CallPool> self = std::move(call->pool);  // may be the last that holds the pool
  const std::lock_guard lock(mutex_);
  free_.push_back(call);
}

void CallPool::part_answered(Part& part, Error* error, const embed::BatchTiming& timing) noexcept {
  Call& call = *part.call;
  if (error != nullptr && !call.failed.exchange(true, std::memory_order_acq_rel))
    call.error = std::move(*error);
  if (call.to_answer.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  call.timing.queued = timing.queued;
  call.timing.started = timing.started;
  call.timing.finished = timing.finished;
  call.timing.batch_tokens = timing.batch_tokens;
  call.timing.batch_sequences = timing.batch_sequences;
  answer(call);
}

void CallPool::answer(Call& call, Result<Decision> decision) noexcept {
  if (!decision) {
    call.error = std::move(decision.error());
    call.failed.store(true, std::memory_order_relaxed);
  } else if (call.explained) {
    call.explanation = Explanation{.decision = *decision};
  } else {
    call.decision = *decision;
  }
  answer(call);
}

void CallPool::answer(Call& call) noexcept {
  const bool decided = call.decision || call.explanation;
  if (decided) {
    call.timing.decided = clock_.now();
  } else {
    WAYBILL_CHECK(call.failed.load(std::memory_order_relaxed));
  }
  if (call.job != nullptr) return call.job->member_answered(call);
  try {
    call.executor->post(CallAnswer(call));
  } catch (...) {
    // The task has been destroyed on the way here, and so has answered.
  }
}

void CallPool::count(ErrorCode code) noexcept {
  const auto add = [](std::atomic<std::uint64_t>& count) { count.fetch_add(1, std::memory_order_relaxed); };
  switch (code) {
    case ErrorCode::kOverloaded:
      return add(counts.refused);
    case ErrorCode::kDeadlineExceeded:
      return add(counts.expired);
    case ErrorCode::kCancelled:
      return add(counts.cancelled);
    case ErrorCode::kShuttingDown:
      return add(counts.stopped);
    default:
      return add(counts.failed);
  }
}

// Whoever holds the pool calls this; the call goes back before the answer is given, which may take its time.
void CallPool::deliver(Call& call, bool dropped) noexcept {
  auto done = std::move(call.done);
  auto explained = std::move(call.explained);
  const DecisionTiming timing = call.timing;
  const std::optional<Decision> decision = call.decision;
  std::optional<Explanation> explanation = std::move(call.explanation);
  std::optional<Error> error;
  if (dropped) {
    error = Error{.code = ErrorCode::kShuttingDown, .message = {}, .field = {}};
    try {
      error->message = "the executor of the request dropped its answer";
    } catch (...) {
    }
  } else if (!decision && !explanation) {
    error = std::move(call.error);
  }
  release(&call);
  if (error) count(error->code);
  try {
    if (explained) {
      error ? explained(std::unexpected(*std::move(error)))
            : explained(ExplanationAnswer{.explanation = *std::move(explanation), .timing = timing});
    } else {
      error ? done(std::unexpected(*std::move(error)))
            : done(DecisionAnswer{.decision = *decision, .timing = timing});
    }
  } catch (...) {
    counts.threw.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace waybill::route
