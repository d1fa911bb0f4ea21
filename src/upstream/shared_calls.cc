#include "upstream/shared_calls.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "http/deadline.h"
#include "upstream/attempt.h"

namespace waybill::upstream {
namespace {

constexpr std::size_t kPiece = 64U << 10;    // of a stream that is sent again
constexpr std::size_t kWindow = 256U << 10;  // of a stream that is not recorded, for those who follow it

TimePoint now() noexcept { return std::chrono::steady_clock::now(); }

Error cancelled() { return {.code = ErrorCode::kCancelled, .message = "The client went away.", .field = {}}; }

Error expired() {
  return {.code = ErrorCode::kDeadlineExceeded,
          .message = "The request's deadline passed while an equal one was under way.",
          .field = {}};
}

Outcome failed(Error error) {
  Outcome outcome;
  outcome.error = std::move(error);
  return outcome;
}

bool is_of_provider(ErrorCode code) noexcept {
  return code == ErrorCode::kInvalidInput || code == ErrorCode::kUpstreamFailed ||
         code == ErrorCode::kUpstreamTimeout;
}

// Without the events of a stream, which the reply has.
Outcome outcome_of(const KeptAnswer& answer) {
  Outcome outcome;
  outcome.error = answer.error;
  outcome.began = answer.began;
  outcome.status = answer.status;
  if (!answer.began) outcome.body = answer.content;
  outcome.facts.model = answer.model;
  outcome.facts.target = answer.target;
  return outcome;
}

AnswerFacts facts_of(std::string model, std::string target) {
  AnswerFacts facts;
  facts.model = std::move(model);
  facts.target = std::move(target);
  return facts;
}

http::Task<Outcome> replay(const KeptAnswer& answer, Reply& reply) {
  if (answer.began) {
    const AnswerFacts facts = facts_of(answer.model, answer.target);
    reply.begin(facts);
    const std::string_view events = answer.content;
    for (std::size_t at = 0; at < events.size(); at += kPiece) {
      const bool taken = co_await reply.write(events.substr(at, kPiece));
      if (!taken) {
        Outcome gone = failed(cancelled());
        gone.began = true;
        co_return gone;
      }
    }
  }
  co_return outcome_of(answer);
}

}  // namespace

// One call, from its first caller to its end. Guarded by the mutex of SharedCalls, but for what says
// otherwise.
struct SharedCalls::Flight {
  explicit Flight(const SharedAsk& ask)
      : key(ask.key), payload(ask.payload), lifetime(ask.lifetime), loop(ask.loop) {}

  const Hash128 key, payload;
  const Duration lifetime;
  http::EventLoop& loop;  // the leader's

  SharedCaller* leader = nullptr;  // the leader's loop only; null once its call has ended
  bool leader_gone = false;
  std::size_t followers = 0;
  bool ended = false;

  std::string model, target;  // do not change once it has begun
  bool begun = false;         // of a stream: there are events
  std::string events;         // the latest of them; moved into the answer, if that is there and has them
  std::size_t dropped = 0;    // bytes before the first of `events`
  bool recorded = true;       // all events are held, and their bytes reserved
  std::size_t reserved = 0;

  std::shared_ptr<const KeptAnswer> answer;  // once it has ended, if it came to something
  std::vector<std::pair<http::EventLoop*, Wake>> waiting;

  [[nodiscard]] std::string_view held() const noexcept {
    return answer && answer->began && recorded ? std::string_view(answer->content) : std::string_view(events);
  }
  // Called without the lock.
  static void wake(std::vector<std::pair<http::EventLoop*, Wake>> waiting) {
    for (auto& [loop, wake] : waiting) loop->post([pending = std::move(wake)] { pending->set(true); });
  }
};

struct SharedCalls::Joined {
  FlightPointer leads = {}, follows = {};
  std::shared_ptr<const KeptAnswer> kept = {};
  bool reused = false;  // another payload has the key
};

// The leader's and a follower's part in a flight, given up however they end.
class SharedCalls::Place {
 public:
  Place(SharedCalls& calls, FlightPointer flight, bool leads)
      : calls_(calls), flight_(std::move(flight)), leads_(leads) {}
  ~Place() {
    if (!leads_) {
      calls_.unfollow(flight_);
      return;
    }
    if (!ended_) calls_.end(*flight_, nullptr);
    flight_->leader = nullptr;
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  void end(const Outcome& outcome) {
    ended_ = true;
    calls_.end(*flight_, &outcome);
  }

 private:
  SharedCalls& calls_;
  const FlightPointer flight_;
  const bool leads_;
  bool ended_ = false;
};

// Hands events to the leader's own client and to those who follow.
class SharedCalls::LeadReply final : public Reply {
 public:
  LeadReply(SharedCalls& calls, Flight& flight, const http::Cancellation& cancellation, Reply& own)
      : calls_(calls), flight_(flight), cancellation_(cancellation), own_(own) {}

  void begin(const AnswerFacts& facts) override {
    calls_.begin(flight_, facts);
    if (!is_gone()) own_.begin(facts);
  }
  http::Task<bool> write(std::string_view events) override {
    calls_.append(flight_, events);
    bool taken = !is_gone();
    if (taken) taken = co_await own_.write(events);
    if (!taken) {
      gone_ = true;
      taken = calls_.leave(flight_);
    }
    co_return taken;
  }
  [[nodiscard]] bool is_gone() const noexcept { return gone_ || cancellation_.requested(); }

 private:
  SharedCalls& calls_;
  Flight& flight_;
  const http::Cancellation& cancellation_;
  Reply& own_;
  bool gone_ = false;
};

http::Task<Outcome> SharedCalls::run(SharedAsk ask, SharedCaller& caller, Reply& reply) {
  for (;;) {
    if (ask.cancellation.requested()) co_return failed(cancelled());
    if (now() >= ask.deadline) co_return failed(expired());
    Joined joined = join(ask);
    if (joined.reused) {
      Error error = {.code = ErrorCode::kKeyReused,
                     .message = "This Idempotency-Key came with another request before; use a new one.",
                     .field = "Idempotency-Key"};
      co_return failed(std::move(error));
    }
    if (joined.kept) {
      Status admitted = caller.joined(AnswerWay::kKept);
      if (!admitted) co_return failed(std::move(admitted.error()));
      Outcome outcome = co_await replay(*joined.kept, reply);
      co_return outcome;
    }
    if (joined.leads) {
      Outcome outcome = co_await lead(ask, joined.leads, caller, reply);
      co_return outcome;
    }
    std::optional<Outcome> outcome = co_await follow(ask, joined.follows, caller, reply);
    if (outcome) co_return std::move(*outcome);
  }
}

SharedCalls::Joined SharedCalls::join(const SharedAsk& ask) {
  Joined joined;
  const std::lock_guard lock(mutex_);
  // An answer is kept before its flight is taken away: a key that has had one is in either.
  if (const auto found = flights_.find(ask.key); found != flights_.end()) {
    joined.reused = found->second->payload != ask.payload;
    if (joined.reused) return joined;
    ++found->second->followers;
    joined.follows = found->second;
    return joined;
  }
  joined.kept = memory_.find(ask.key, now());
  if (joined.kept) {
    joined.reused = joined.kept->payload != ask.payload;
    return joined;
  }
  joined.leads = std::make_shared<Flight>(ask);
  flights_.emplace(ask.key, joined.leads);
  return joined;
}

http::Task<Outcome> SharedCalls::lead(const SharedAsk& ask, const FlightPointer& flight, SharedCaller& caller,
                                      Reply& reply) {
  Place place(*this, flight, true);
  Status admitted = caller.joined(AnswerWay::kLed);
  if (!admitted) co_return failed(std::move(admitted.error()));
  flight->leader = &caller;
  LeadReply shared(*this, *flight, ask.cancellation, reply);
  Outcome outcome;
  {
    const http::Cancellation::Listener gone(ask.cancellation, [this, &flight, &caller] {
      if (!leave(*flight)) caller.abandon();
    });
    outcome = co_await caller.lead(shared);
  }
  place.end(outcome);
  if (shared.is_gone() && !outcome.error) {
    outcome.error = cancelled();
    outcome.body.clear();
  }
  co_return outcome;
}

http::Task<std::optional<Outcome>> SharedCalls::follow(const SharedAsk& ask, const FlightPointer& flight,
                                                       SharedCaller& caller, Reply& reply) {
  const Place place(*this, flight, false);
  Status admitted = caller.joined(AnswerWay::kShared);
  if (!admitted) co_return failed(std::move(admitted.error()));
  bool begun = false;
  std::size_t at = 0;
  std::string piece;
  std::optional<Error> error;
  while (!error) {
    auto wake = std::make_shared<http::Pending<bool>>();
    const Step step = next(*flight, at, piece, ask.loop, wake);
    if (step == Step::kNothing) co_return std::nullopt;
    if (step == Step::kAnswer) {
      Outcome outcome = outcome_of(*flight->answer);
      if (!begun || !outcome.error || outcome.error->code != ErrorCode::kInternal) co_return outcome;
      error = std::move(outcome.error);  // the leader broke off in the middle
      continue;
    }
    if (step == Step::kEvents) {
      if (!std::exchange(begun, true)) {
        const AnswerFacts facts = facts_of(flight->model, flight->target);
        reply.begin(facts);
      }
      const bool taken = co_await reply.write(piece);
      if (!taken) error = cancelled();
      continue;
    }
    if (step == Step::kLagging) {
      if (!begun) co_return std::nullopt;
      error = Error{.code = ErrorCode::kUpstreamFailed,
                    .message = "The answer came faster than it was taken, and part of it is gone.",
                    .field = {}};
      continue;
    }
    {
      http::Deadline due(ask.loop, [wake] { wake->set(true); });
      due.set(ask.deadline);
      const http::Cancellation::Listener gone(ask.cancellation, [wake] { wake->set(true); });
      (void)co_await wake->get();
    }
    if (ask.cancellation.requested()) {
      error = cancelled();
    } else if (now() >= ask.deadline) {
      error = expired();
    }
  }
  Outcome outcome = failed(std::move(*error));
  outcome.began = begun;
  if (begun) outcome.facts = facts_of(flight->model, flight->target);
  if (begun && outcome.error->code != ErrorCode::kCancelled) {
    const bool late = outcome.error->code == ErrorCode::kDeadlineExceeded;
    const std::string event =
        error_event(outcome.error->message, late ? "deadline_exceeded" : "upstream_failed");
    (void)co_await reply.write(event);
  }
  co_return outcome;
}

void SharedCalls::begin(Flight& flight, const AnswerFacts& facts) {
  const std::lock_guard lock(mutex_);
  flight.model = facts.model;
  flight.target = facts.target;
  flight.begun = true;
}

void SharedCalls::append(Flight& flight, std::string_view events) {
  std::vector<std::pair<http::EventLoop*, Wake>> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (flight.recorded) {
      const bool fits = flight.events.size() + events.size() <= memory_.largest();
      if (fits && memory_.reserve(events.size())) {
        flight.reserved += events.size();
      } else {
        flight.recorded = false;
        memory_.release(std::exchange(flight.reserved, 0));
        unmap(flight);  // who came now would miss its beginning
      }
    }
    flight.events.append(events);
    const std::size_t most = flight.followers == 0 ? 0 : kWindow;
    // Moved together only when there is much of it.
    if (!flight.recorded && flight.events.size() > 2 * most + events.size()) {
      const std::size_t excess = flight.events.size() - most;
      flight.events.erase(0, excess);
      flight.dropped += excess;
    }
    waiting.swap(flight.waiting);
  }
  Flight::wake(std::move(waiting));
}

bool SharedCalls::leave(Flight& flight) {
  const std::lock_guard lock(mutex_);
  flight.leader_gone = true;
  if (flight.followers > 0) return true;
  unmap(flight);
  return false;
}

void SharedCalls::end(Flight& flight, const Outcome* outcome) {
  std::vector<std::pair<http::EventLoop*, Wake>> waiting;
  {
    const std::lock_guard lock(mutex_);
    memory_.release(std::exchange(flight.reserved, 0));
    const bool good = outcome != nullptr && !outcome->error;
    const bool keeps_error = outcome != nullptr && outcome->error && policy_ == ErrorPolicy::kKeep &&
                             is_of_provider(outcome->error->code);
    const bool refused = outcome != nullptr && outcome->error && !outcome->began &&
                         outcome->error->code == ErrorCode::kInvalidInput;
    const bool keeps = (good || keeps_error) && flight.recorded;
    if (good || keeps_error || refused || flight.begun) {
      auto answer = std::make_shared<KeptAnswer>();
      answer->payload = flight.payload;
      answer->began = flight.begun;
      if (outcome != nullptr) {
        answer->status = outcome->status;
        answer->error = outcome->error;
        answer->model = flight.begun ? flight.model : outcome->facts.model;
        answer->target = flight.begun ? flight.target : outcome->facts.target;
        if (!flight.begun && (flight.followers > 0 || keeps)) answer->content = outcome->body;
      } else {
        answer->error = Error{.code = ErrorCode::kInternal, .message = "The call was given up.", .field = {}};
      }
      if (flight.begun && flight.recorded) answer->content = std::move(flight.events);
      if (keeps) memory_.keep(flight.key, answer, now() + flight.lifetime);
      flight.answer = std::move(answer);
    }
    flight.ended = true;
    unmap(flight);
    waiting.swap(flight.waiting);
  }
  Flight::wake(std::move(waiting));
}

SharedCalls::Step SharedCalls::next(Flight& flight, std::size_t& at, std::string& piece,
                                    http::EventLoop& loop, const Wake& wake) {
  const std::lock_guard lock(mutex_);
  const std::string_view held = flight.held();
  if (flight.begun) {
    if (at < flight.dropped) return Step::kLagging;
    const std::string_view rest = held.substr(at - flight.dropped);
    if (!rest.empty()) {
      piece.assign(rest.substr(0, kPiece));
      at += piece.size();
      return Step::kEvents;
    }
  }
  if (flight.ended) return flight.answer ? Step::kAnswer : Step::kNothing;
  flight.waiting.emplace_back(&loop, wake);
  return Step::kWait;
}

void SharedCalls::unfollow(const FlightPointer& flight) {
  const std::lock_guard lock(mutex_);
  if (--flight->followers > 0 || !flight->leader_gone || flight->ended) return;
  unmap(*flight);
  flight->loop.post([flight] {
    if (flight->leader != nullptr) flight->leader->abandon();
  });
}

void SharedCalls::unmap(const Flight& flight) {
  const auto found = flights_.find(flight.key);
  if (found != flights_.end() && found->second.get() == &flight) flights_.erase(found);
}

}  // namespace waybill::upstream
