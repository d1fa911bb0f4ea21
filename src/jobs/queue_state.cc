#include "jobs/queue_state.h"

#include <algorithm>
#include <utility>

#include "jobs/retry_policy.h"

namespace waybill::jobs {

QueueState::QueueState(std::shared_ptr<const config::JobQueue> queue)
    : queue_(std::move(queue)),
      rate_(TokenBucket::of_minute(static_cast<double>(queue_->requests_per_minute))) {}

void QueueState::configure(std::shared_ptr<const config::JobQueue> queue, TimePoint now) {
  const auto rate = static_cast<double>(queue->requests_per_minute);
  if (rate <= 0) {
    rate_ = TokenBucket();
  } else if (queue->requests_per_minute != queue_->requests_per_minute) {
    rate_.resize(rate, rate / 60, now);
  }
  queue_ = std::move(queue);
  awake_ = true;
  retired_ = false;
}

std::size_t QueueState::wanted(TimePoint now) const noexcept {
  if (retired_ || asked_ > 0 || now < not_before_ || !(awake_ || now >= look_at_)) return 0;
  if (running_ >= queue_->concurrency) return 0;
  std::size_t wanted = std::min(queue_->concurrency - running_, kMostOfAClaim);
  if (rate_.has_limit()) {
    if (rate_.wait(1, now) > Duration::zero()) return 0;
    wanted = std::min(wanted, static_cast<std::size_t>(std::max(1.0, rate_.level(now))));
  }
  return wanted;
}

void QueueState::claim(std::size_t asked, TimePoint now) noexcept {
  asked_ = asked;
  awake_ = false;  // news from now on is of what the claim may not have seen
  rate_.take(static_cast<double>(asked), now);
}

void QueueState::claimed(std::size_t got, TimePoint now) noexcept {
  if (rate_.has_limit()) rate_.give_back(static_cast<double>(asked_ - got));
  if (got == asked_) awake_ = true;  // there may be more
  look_at_ = now + kLook;
  running_ += got;
  asked_ = 0;
}

void QueueState::claim_failed(TimePoint now) noexcept {
  claimed(0, now);
  awake_ = true;
}

void QueueState::ended(bool released, TimePoint now, double random) noexcept {
  --running_;
  if (!released) {
    releases_ = 0;
    return;
  }
  ++releases_;
  const std::size_t rounds = releases_ / queue_->concurrency;
  if (rounds == 0) return;
  not_before_ = now + backoff_of(queue_->backoff, static_cast<std::uint32_t>(rounds), random);
}

}  // namespace waybill::jobs
