#include "route/decision_job.h"

#include <utility>

namespace waybill::route {

// Delivers the answer when run, and also when it is destroyed unrun.
class JobAnswer {
 public:
  explicit JobAnswer(DecisionJob& job) noexcept : job_(&job) {}
  JobAnswer(JobAnswer&& other) noexcept : job_(std::move(other.job_)) {}
  JobAnswer& operator=(JobAnswer&&) = delete;
  ~JobAnswer() {
    if (job_) job_->deliver(true);
  }

  void operator()() noexcept {
    job_->deliver(false);
    job_.reset();
  }

 private:
  std::unique_ptr<DecisionJob> job_;
};

DecisionJob::DecisionJob(JobHost& host, std::shared_ptr<CallPool> pool,
                         std::span<const std::string_view> prompts, const CallOptions& call,
                         DecisionService::BatchCompletion&& done, std::size_t max_tokens_in_flight)
    : host_(host),
      pool_(std::move(pool)),
      prompts_(prompts),
      call_(call),
      max_tokens_in_flight_(max_tokens_in_flight),
      answers_(prompts.size()) {
  done_ = std::move(done);
}

void DecisionJob::pump() {
  for (;;) {
    std::size_t i = 0;
    {
      const std::lock_guard lock(mutex_);
      const bool over = error_ || next_ == prompts_.size();
      if (over || tokens_in_flight_ >= max_tokens_in_flight_) {
        pumping_ = false;
        if (!over || items_in_flight_ != 0) return;  // member_answered() goes on
        break;
      }
      i = next_++;
      ++items_in_flight_;  // before it begins: its answer may come at once
    }
    std::size_t tokens = 0;
    const DecisionCall call{.prompt = prompts_[i],
                            .deadline = call_.deadline,
                            .executor = call_.executor,
                            .cancelled = call_.cancelled,
                            .allow_degraded = call_.allow_degraded};
    auto answer = host_.begin_member(*this, static_cast<std::uint32_t>(i), call, tokens);
    const std::lock_guard lock(mutex_);
    if (!answer) {
      tokens_in_flight_ += tokens;  // possibly after its answer has subtracted them: it wraps around and back
      continue;
    }
    --items_in_flight_;
    if (*answer) {
      answers_[i] = **answer;
    } else if (!error_) {
      error_ = std::move(answer->error());
    }
  }
  finish();
}

void DecisionJob::member_answered(Call& call) noexcept {
  bool resume = false;
  {
    const std::lock_guard lock(mutex_);
    if (call.decision) {
      answers_[call.member] = {.decision = *call.decision, .timing = call.timing};
    } else if (!error_) {
      error_ = std::move(call.error);
    }
    tokens_in_flight_ -= call.timing.tokens;
    --items_in_flight_;
    pool_->release(&call);
    if (pumping_) return;
    const bool over = error_ || next_ == prompts_.size();
    if (!over && tokens_in_flight_ <= max_tokens_in_flight_ / 2) {
      pumping_ = true;
      resume = true;
    } else if (!over || items_in_flight_ != 0) {
      return;
    }
  }
  if (!resume) return finish();
  if (host_.resume([this] { pump(); })) return;
  {
    const std::lock_guard lock(mutex_);
    pumping_ = false;
    error_ = Error{.code = ErrorCode::kShuttingDown, .message = "the router is shutting down", .field = {}};
    if (items_in_flight_ != 0) return;
  }
  finish();
}

void DecisionJob::finish() noexcept {
  JobHost& host = host_;
  Executor& executor = *call_.executor;
  try {
    executor.post(JobAnswer(*this));
  } catch (...) {
    // The task has been destroyed on the way here, and so has answered.
  }
  host.job_ended();
}

void DecisionJob::deliver(bool dropped) noexcept {
  if (dropped)
    error_ =
        Error{.code = ErrorCode::kShuttingDown, .message = "the executor dropped the answer", .field = {}};
  if (error_) pool_->count(error_->code);
  try {
    error_ ? done_(std::unexpected(*std::move(error_))) : done_(std::move(answers_));
  } catch (...) {
    pool_->counts.threw.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace waybill::route
