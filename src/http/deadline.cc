#include "http/deadline.h"

#include <algorithm>

namespace waybill::http {

Deadline::Deadline(EventLoop& loop, std::move_only_function<void()> expired)
    : list_(loop.local<DeadlineList>()), expired_(std::move(expired)) {
  list_.add(*this);
}

Deadline::~Deadline() { list_.remove(*this); }

void Deadline::set(TimePoint at) noexcept {
  at_ = at;
  if (at == TimePoint::max()) return;
  list_.soonest_ = std::min(list_.soonest_, at);
  list_.watch();
}

DeadlineList::DeadlineList(EventLoop& loop) : timer_(loop.context()) {}

void DeadlineList::add(Deadline& deadline) noexcept {
  deadline.after_ = first_;
  if (first_ != nullptr) first_->before_ = &deadline;
  first_ = &deadline;
}

void DeadlineList::remove(Deadline& deadline) noexcept {
  if (next_ == &deadline) next_ = deadline.after_;
  (deadline.before_ != nullptr ? deadline.before_->after_ : first_) = deadline.after_;
  if (deadline.after_ != nullptr) deadline.after_->before_ = deadline.before_;
}

void DeadlineList::watch() {
  if (watching_) return;
  watching_ = true;
  timer_.expires_after(Deadline::kGrain);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) look();
  });
}

void DeadlineList::look() {
  watching_ = false;
  const TimePoint now = std::chrono::steady_clock::now();
  if (now >= soonest_) look_at_all(now);
  if (soonest_ != TimePoint::max()) watch();
}

void DeadlineList::look_at_all(TimePoint now) {
  soonest_ = TimePoint::max();
  for (Deadline* each = first_; each != nullptr; each = next_) {
    next_ = each->after_;
    if (now < each->at_) {
      soonest_ = std::min(soonest_, each->at_);
      continue;
    }
    each->at_ = TimePoint::max();
    each->expired_();  // may set others, which counts for the soonest
  }
  next_ = nullptr;
}

}  // namespace waybill::http
