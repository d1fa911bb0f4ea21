#include "upstream/lane_queue.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"

namespace waybill::upstream {
namespace {

constexpr unsigned kAgedTurn = 8;         // one of so many freed slots is for batch calls that have aged
constexpr double kHoldWeight = 1.0 / 16;  // of the latest call in the average
constexpr Duration kLongestSleep = std::chrono::milliseconds(250);
constexpr Duration kUnknownHold = std::chrono::seconds(1);  // to retry after, before any call has ended

std::size_t index(Lane lane) noexcept { return static_cast<std::size_t>(lane); }

TimePoint later(TimePoint from, Duration by) noexcept {
  return by < TimePoint::max() - from ? from + by : TimePoint::max();
}

std::string in_seconds(Duration d) { return fmt::format("{:.1f} s", seconds(d)); }

}  // namespace

LaneSlot::~LaneSlot() {
  rates_ = {};  // first, so that whoever is next can have it
  if (queue_ != nullptr) queue_->give_back(lane_, std::nullopt, std::nullopt);
}

void LaneSlot::release(TimePoint now) {
  rates_ = {};
  if (LaneQueue* queue = std::exchange(queue_, nullptr)) queue->give_back(lane_, granted_, now);
}

LaneQueue::LaneQueue(std::string provider, const LaneQueueOptions& options)
    : provider_(std::move(provider)),
      rates_(options.requests_per_minute, options.tokens_per_minute),
      options_(options) {}

LaneQueue::~LaneQueue() { WAYBILL_CHECK(in_use_[0] + in_use_[1] + waiting() == 0); }

Result<LaneQueue::Admission> LaneQueue::enter(const Ticket& ticket, TimePoint now, Done done) {
  Answers answers;
  const auto decide = [&]() -> Result<Admission> {
    const std::scoped_lock lock(mutex_);
    now = advance(now);
    if (stopped_) return fail(ErrorCode::kShuttingDown, "the gateway is being stopped");
    if (now >= ticket.deadline)
      return fail(ErrorCode::kDeadlineExceeded, "the deadline had passed before the call was made");
    if (waiting() != 0) serve(now, answers);  // what was waited for may be here
    const bool first = waiters_[index(Lane::kInteractive)].empty() && waiters_[index(ticket.lane)].empty();
    if (first && has_room(ticket.lane)) {
      auto reserved = rates_.reserve(ticket.tokens, now);
      if (reserved) {
        ++in_use_[index(ticket.lane)];
        return Admission{LaneSlot(*this, ticket.lane, *std::move(reserved), now)};
      }
      rates_until_ = later(now, reserved.error().wait);
    }
    if (std::optional<Error> error = refusal(ticket, now)) return std::unexpected(*std::move(error));
    return Admission{{}, enqueue(ticket, now, std::move(done))};
  };
  Result<Admission> admission = decide();
  post(answers);
  return admission;
}

bool LaneQueue::cancel(WaiterId waiter, TimePoint now) {
  std::optional<Waiter> taken;  // destroyed without the lock, as what `done` holds is not ours
  Answers answers;
  {
    const std::scoped_lock lock(mutex_);
    now = advance(now);
    for (const Lane lane : {Lane::kInteractive, Lane::kBatch}) {
      if (const auto found = waiters_[index(lane)].find(waiter); found != waiters_[index(lane)].end()) {
        taken = take(lane, found);
        break;
      }
    }
    serve(now, answers);
  }
  post(answers);
  return taken.has_value();
}

void LaneQueue::expire(TimePoint now) {
  Answers answers;
  {
    const std::scoped_lock lock(mutex_);
    serve(advance(now), answers);
  }
  post(answers);
}

TimePoint LaneQueue::next_due() const {
  const std::scoped_lock lock(mutex_);
  if (give_up_.empty()) return TimePoint::max();
  const TimePoint gives_up = give_up_.begin()->first;
  const TimePoint due = std::min(gives_up, later(now_, kLongestSleep));
  // Once these have passed and been served, it is the slots that are waited for.
  return rates_until_ > now_ ? std::min(due, rates_until_) : due;
}

void LaneQueue::configure(const LaneQueueOptions& options, TimePoint now) {
  Answers answers;
  {
    const std::scoped_lock lock(mutex_);
    options_ = options;
    now = advance(now);
    rates_.configure(options.requests_per_minute, options.tokens_per_minute, now);
    serve(now, answers);
  }
  post(answers);
}

void LaneQueue::stop() {
  Answers answers;
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    for (const Lane lane : {Lane::kInteractive, Lane::kBatch}) {
      Waiters& waiters = waiters_[index(lane)];
      while (!waiters.empty()) {
        Waiter waiter = take(lane, waiters.begin());
        answers.push_back({waiter.executor, std::move(waiter.done),
                           fail(ErrorCode::kShuttingDown, "the gateway was stopped while the call waited")});
      }
    }
  }
  post(answers);
}

LaneQueue::Stats LaneQueue::stats(TimePoint now) const {
  const std::scoped_lock lock(mutex_);
  Stats stats;
  for (const Lane lane : {Lane::kInteractive, Lane::kBatch}) {
    Stats::PerLane& told = lane == Lane::kInteractive ? stats.interactive : stats.batch;
    const Waiters& waiters = waiters_[index(lane)];
    told.in_use = in_use_[index(lane)];
    told.waiting = waiters.size();
    told.predicted_wait = predict(lane, 0, 0, now).wait();
    if (!waiters.empty()) told.oldest_wait = now - waiters.begin()->second.entered;
  }
  stats.hold = Duration(static_cast<Duration::rep>(hold_ns_));
  return stats;
}

void LaneQueue::give_back(Lane lane, std::optional<TimePoint> granted,
                          std::optional<TimePoint> now) noexcept {
  Answers answers;
  {
    const std::scoped_lock lock(mutex_);
    WAYBILL_CHECK(in_use_[index(lane)] > 0);
    --in_use_[index(lane)];
    if (granted && now) {
      const auto held = static_cast<double>(std::max(*now - *granted, Duration::zero()).count());
      hold_ns_ = hold_ns_ == 0 ? held : hold_ns_ + kHoldWeight * (held - hold_ns_);
    }
    serve(advance(now.value_or(now_)), answers);
  }
  post(answers);
}

// Loops read their clocks before they get the lock, so times may come out of order.
TimePoint LaneQueue::advance(TimePoint now) noexcept { return now_ = std::max(now_, now); }

std::size_t LaneQueue::batch_cap() const noexcept {
  const std::size_t slots = options_.slots;
  if (options_.batch_slots != 0)
    return slots == 0 ? options_.batch_slots : std::min(options_.batch_slots, slots);
  if (slots == 0) return SIZE_MAX;
  return std::max<std::size_t>(1, slots - std::max<std::size_t>(1, slots / 8));
}

bool LaneQueue::has_room(Lane lane) const noexcept {
  if (options_.slots != 0 && in_use_[0] + in_use_[1] >= options_.slots) return false;
  return lane == Lane::kInteractive || in_use_[index(Lane::kBatch)] < batch_cap();
}

std::optional<Lane> LaneQueue::next_lane(TimePoint now) const noexcept {
  const Waiters& batch = waiters_[index(Lane::kBatch)];
  const bool batch_may = !batch.empty() && has_room(Lane::kBatch);
  if (waiters_[index(Lane::kInteractive)].empty() || !has_room(Lane::kInteractive))
    return batch_may ? std::optional(Lane::kBatch) : std::nullopt;
  if (batch_may && passed_over_ + 1 >= kAgedTurn && now - batch.begin()->second.entered >= options_.aging)
    return Lane::kBatch;
  return Lane::kInteractive;
}

// Of a call with so many tokens whose caller has so many waiting.
LaneQueue::Prediction LaneQueue::predict(Lane lane, std::size_t own_waiting, std::uint64_t tokens,
                                         TimePoint now) const {
  // Once all slots are in use, one frees every hold / slots.
  const auto rounds = [](std::size_t waiting, std::size_t in_use, std::size_t slots) {
    if (slots == 0 || slots == SIZE_MAX) return 0.0;
    const std::size_t taken = waiting + in_use + 1;
    return taken > slots ? static_cast<double>(taken - slots) / static_cast<double>(slots) : 0.0;
  };
  std::size_t before = waiters_[index(Lane::kInteractive)].size();
  std::uint64_t tokens_before = waiting_tokens_[index(Lane::kInteractive)];
  double longest = 0;
  if (lane == Lane::kBatch) {
    // At most as many of every other caller go first as there are of this one.
    const std::size_t callers = turns_.size() + (own_waiting == 0 ? 1 : 0);
    const std::size_t all = waiters_[index(Lane::kBatch)].size();
    const std::size_t batch = std::min(all, (own_waiting + 1) * callers);
    longest = rounds(batch, in_use_[index(Lane::kBatch)], batch_cap());
    before += batch;
    tokens_before += waiting_tokens_[index(Lane::kBatch)] / std::max<std::size_t>(all, 1) * batch;
  }
  longest = std::max(longest, rounds(before, in_use_[0] + in_use_[1], options_.slots));
  return {.limits = rates_.wait(tokens, before, tokens_before, now),
          .slots = Duration(static_cast<Duration::rep>(std::min(longest * hold_ns_, 1e18)))};
}

std::optional<Error> LaneQueue::refusal(const Ticket& ticket, TimePoint now) const {
  if (waiting() >= options_.max_queue) {
    const auto round = hold_ns_ == 0 ? kUnknownHold : Duration(static_cast<Duration::rep>(hold_ns_));
    return Error{ErrorCode::kOverloaded,
                 fmt::format("{} calls wait for provider '{}' already, and its limits.max_queue is {}",
                             waiting(), provider_, options_.max_queue),
                 {},
                 round};
  }
  const auto turn = ticket.lane == Lane::kBatch ? turn_of_.find(ticket.caller) : turn_of_.end();
  const std::size_t own_waiting = turn == turn_of_.end() ? 0 : turn->second->waiters.size();
  const Prediction predicted = predict(ticket.lane, own_waiting, ticket.tokens, now);
  const Duration wait = predicted.wait();
  const Duration left = ticket.deadline - now;
  const Duration allowed = std::min(left, options_.max_wait);
  if (wait < allowed) return std::nullopt;
  const std::string limit = left < options_.max_wait
                                ? fmt::format("the call has {} left", in_seconds(left))
                                : fmt::format("its limits.max_wait is {}", in_seconds(options_.max_wait));
  if (predicted.limits > Duration::zero() && predicted.limits >= allowed) {
    return Error{ErrorCode::kRateLimited,
                 fmt::format("the limits of provider '{}' are used up and allow the call in {}, and {}",
                             provider_, in_seconds(predicted.limits), limit),
                 {},
                 predicted.limits};
  }
  return Error{ErrorCode::kOverloaded,
               fmt::format("a call to provider '{}' would wait about {} behind {} others, and {}", provider_,
                           in_seconds(wait), waiting(), limit),
               {},
               wait - allowed > Duration::zero() ? wait - allowed : kUnknownHold};
}

LaneQueue::WaiterId LaneQueue::enqueue(const Ticket& ticket, TimePoint now, Done done) {
  const WaiterId id = ++last_waiter_;
  Turns::iterator turn = turns_.end();
  if (ticket.lane == Lane::kBatch) {
    if (const auto found = turn_of_.find(ticket.caller); found != turn_of_.end()) {
      turn = found->second;
    } else {
      turn = turns_.insert(turns_.end(), {std::string(ticket.caller), {}});
      turn_of_.emplace(turn->name, turn);
    }
    turn->waiters.insert(id);
  }
  const TimePoint give_up = std::min(ticket.deadline, later(now, options_.max_wait));
  give_up_.emplace(give_up, id);
  waiting_tokens_[index(ticket.lane)] += ticket.tokens;
  waiters_[index(ticket.lane)].emplace(
      id, Waiter{ticket.tokens, now, ticket.deadline, give_up, ticket.executor, std::move(done), turn});
  return id;
}

LaneQueue::Waiter LaneQueue::take(Lane lane, Waiters::iterator waiter) {
  const WaiterId id = waiter->first;
  Waiter taken = std::move(waiter->second);
  waiters_[index(lane)].erase(waiter);
  give_up_.erase({taken.give_up, id});
  waiting_tokens_[index(lane)] -= taken.tokens;
  if (lane == Lane::kBatch) {
    taken.turn->waiters.erase(id);
    if (taken.turn->waiters.empty()) {
      turn_of_.erase(taken.turn->name);
      turns_.erase(taken.turn);
      taken.turn = turns_.end();
    }
  }
  return taken;
}

void LaneQueue::serve(TimePoint now, Answers& answers) {
  answer_expired(now, answers);
  while (const std::optional<Lane> lane = next_lane(now)) {
    Waiters& waiters = waiters_[index(*lane)];
    const bool batch = *lane == Lane::kBatch;
    const auto first = batch ? waiters.find(*turns_.front().waiters.begin()) : waiters.begin();
    auto reserved = rates_.reserve(first->second.tokens, now);
    if (!reserved) {
      rates_until_ = later(now, reserved.error().wait);
      return;
    }
    Waiter waiter = take(*lane, first);
    if (batch && waiter.turn != turns_.end()) turns_.splice(turns_.end(), turns_, waiter.turn);
    passed_over_ = batch || waiters_[index(Lane::kBatch)].empty() ? 0 : passed_over_ + 1;
    ++in_use_[index(*lane)];
    answers.push_back(
        {waiter.executor, std::move(waiter.done), LaneSlot(*this, *lane, *std::move(reserved), now)});
  }
}

void LaneQueue::answer_expired(TimePoint now, Answers& answers) {
  while (!give_up_.empty() && give_up_.begin()->first <= now) {
    const WaiterId id = give_up_.begin()->second;
    const Lane lane = waiters_[index(Lane::kBatch)].contains(id) ? Lane::kBatch : Lane::kInteractive;
    Waiter waiter = take(lane, waiters_[index(lane)].find(id));
    const std::string waited = in_seconds(now - waiter.entered);
    Error error;
    if (now >= waiter.deadline) {
      error = {
          ErrorCode::kDeadlineExceeded,
          fmt::format("the deadline passed after {} in this gateway's queue for provider '{}', which was "
                      "not called",
                      waited, provider_),
          {},
          {}};
    } else {
      error = {ErrorCode::kOverloaded,
               fmt::format("the call waited {} for provider '{}', and its limits.max_wait is {}", waited,
                           provider_, in_seconds(options_.max_wait)),
               {},
               predict(lane, 0, 0, now).wait()};
    }
    answers.push_back({waiter.executor, std::move(waiter.done), std::unexpected(std::move(error))});
  }
}

void LaneQueue::post(Answers& answers) {
  for (Answer& answer : answers) {
    answer.executor->post([done = std::move(answer.done), result = std::move(answer.result)]() mutable {
      done(std::move(result));
    });
  }
}

}  // namespace waybill::upstream
