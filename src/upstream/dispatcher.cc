#include "upstream/dispatcher.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "http/deadline.h"
#include "http/pending.h"

namespace waybill::upstream {
namespace {

using telemetry::Stage;
using End = AttemptResult::End;

constexpr std::size_t kMostModels = 8;  // one, and its fallbacks
constexpr Duration kFirstBackoff = std::chrono::milliseconds(100);
constexpr Duration kMostBackoff = std::chrono::seconds(2);
// A target that has too much to do, and does not say for how long, is left alone for about this.
constexpr Duration kUnsaidCooling = std::chrono::seconds(1);

TimePoint now() noexcept { return std::chrono::steady_clock::now(); }

Error cancelled() { return {.code = ErrorCode::kCancelled, .message = "The client went away.", .field = {}}; }

Error expired(std::string_view doing) {
  return {.code = ErrorCode::kDeadlineExceeded,
          .message = fmt::format("The request's deadline passed {}.", doing),
          .field = {}};
}

http::Task<Result<LaneSlot>> wait_for_slot(const Call& call, LaneQueue& lanes) {
  // Shared with an answer that may come after all else here has ended.
  auto pending = std::make_shared<http::Pending<Result<LaneSlot>>>();
  auto done = [pending](Result<LaneSlot> slot) { pending->set(std::move(slot)); };
  const LaneQueue::Ticket ticket = {
      .lane = call.lane,
      .caller = call.caller,
      .deadline = call.deadline,
      .executor = &call.loop,
      .tokens = std::uint64_t{call.request.prompt_tokens()} + expected_answer_tokens(call.request)};
  Result<LaneQueue::Admission> admitted = lanes.enter(ticket, now(), std::move(done));
  if (!admitted) co_return std::unexpected(std::move(admitted.error()));
  if (admitted->slot) co_return std::move(admitted->slot);
  const LaneQueue::WaiterId waiter = admitted->waiter;
  http::Deadline* watch = nullptr;
  http::Deadline due(call.loop, [&lanes, &watch] {
    lanes.expire(now());
    watch->set(std::max(lanes.next_due(), now() + http::Deadline::kGrain));
  });
  watch = &due;
  due.set(lanes.next_due());
  const http::Cancellation::Listener listener(call.cancellation, [&lanes, waiter, pending] {
    if (lanes.cancel(waiter, now())) pending->set(std::unexpected(cancelled()));
  });
  Result<LaneSlot> slot = co_await pending->get();
  co_return slot;
}

// False: it was cancelled meanwhile.
http::Task<bool> sleep_until(const Call& call, TimePoint until) {
  http::Pending<bool> pending;
  http::Deadline due(call.loop, [&pending] { pending.set(true); });
  due.set(until);
  const http::Cancellation::Listener listener(call.cancellation, [&pending] { pending.set(false); });
  const bool slept = co_await pending.get();
  co_return slept;
}

// Counts a call while it is under way, however it ends.
class InFlight {
 public:
  explicit InFlight(LoadMeter& load) noexcept : load_(load) { load_.begin(); }
  ~InFlight() { load_.end(); }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

 private:
  LoadMeter& load_;
};

// "provider/model", where the call asks for a provider's model by its own name.
std::string name_of(const Model& model, const Call& call) {
  return model.name.ends_with('/') ? model.name + std::string(call.model) : model.name;
}

std::string_view result_name(const AttemptResult& result) {
  switch (result.end) {
    case End::kAnswered:
      return "answered";
    case End::kAbandoned:
      return "cancelled";
    case End::kExpired:
      return "expired";
    case End::kCut:
      return "cut";
    case End::kFailed:
      break;
  }
  return to_string(result.failure.kind);
}

}  // namespace

// One call on its way.
struct Dispatcher::Run {
  const Call& call;
  const Catalog& catalog;
  Reply& reply;
  Outcome outcome = {};
  std::vector<const Target*> tried = {};      // not to be called again
  std::vector<const Target*> transient = {};  // of these, those that may do better in a moment
  std::optional<Failure> last = {};
  std::string last_target = {};
  std::optional<Error> refused = {};  // by our own queue
  unsigned backoffs = 0;
  bool ended = false, out_of_retries = false;

  [[nodiscard]] unsigned attempts() const noexcept { return outcome.facts.attempts; }
  void end(Error error) {
    outcome.error = std::move(error);
    ended = true;
  }
};

Dispatcher::Dispatcher(telemetry::ProgramMetrics& metrics)
    : metrics_(metrics), random_(std::random_device{}()) {}

// A Weyl sequence; choose() and back_off() mix it.
std::uint64_t Dispatcher::random() noexcept {
  return random_.fetch_add(0x9E3779B97F4A7C15U, std::memory_order_relaxed) * 0xBF58476D1CE4E5B9U;
}

http::Task<Outcome> Dispatcher::run(const Call& call, const Catalog& catalog, const Model& model,
                                    Reply& reply) {
  Run run{.call = call, .catalog = catalog, .reply = reply};
  budget_.count_call(now());
  std::vector<const Model*> chain = {&model};
  for (std::size_t i = 0; i < chain.size() && chain.size() < kMostModels; ++i) {
    for (const Model* next : chain[i]->fallback) {
      if (std::ranges::find(chain, next) == chain.end()) chain.push_back(next);
    }
  }
  for (std::size_t i = 0; i < chain.size() && !run.ended; ++i)
    co_await use(run, *chain[i], i + 1 == chain.size());
  if (!run.ended) conclude(run, model);
  const AnswerFacts& facts = run.outcome.facts;
  call.waybill.upstream({.target = facts.target,
                         .attempts = facts.attempts,
                         .prompt_tokens = run.outcome.usage.prompt,
                         .completion_tokens = run.outcome.usage.completion,
                         .cost_nano_usd = run.outcome.cost_nano_usd});
  co_return std::move(run.outcome);
}

http::Task<> Dispatcher::use(Run& run, const Model& model, bool last) {
  while (!run.ended) {
    if (run.call.cancellation.requested() && !run.call.finish_abandoned) co_return run.end(cancelled());
    if (now() >= run.call.deadline) co_return run.end(expired("before a provider had answered"));
    if (run.attempts() >= run.catalog.gateway().max_attempts || run.out_of_retries) co_return;
    const std::uint64_t affinity = model.config.prefix_affinity ? run.call.request.conversation() : 0;
    const Choice choice = choose(model.pool, run.tried, affinity, random(), now());
    if (choice.target == nullptr) {
      bool again = false;
      if (last) again = co_await back_off(run);
      if (!again) co_return;
      continue;
    }
    if (run.attempts() > 0) {
      if (!budget_.take_retry(now(), run.catalog.gateway())) {
        choice.target->circuit.abandoned(choice.pass);
        run.out_of_retries = true;
        metrics_.retries_refused.add();
        co_return;
      }
      metrics_.retries.with({run.last ? to_string(run.last->kind) : std::string_view("refused")}).add();
    }
    co_await try_target(run, model, choice);
  }
}

// Waits a moment, where one of the targets that have failed may then do better.
http::Task<bool> Dispatcher::back_off(Run& run) {
  if (run.transient.empty()) co_return false;
  const Duration most = std::min(kMostBackoff, kFirstBackoff * (1U << std::min(run.backoffs++, 10U)));
  const Duration wait(static_cast<Duration::rep>(random() >> 1U) % most.count());
  const TimePoint until = now() + wait;
  if (until >= run.call.deadline) co_return false;
  const bool slept = co_await sleep_until(run.call, until);
  if (!slept) co_return !run.call.finish_abandoned;  // use() says what that means
  for (const Target* each : run.transient) std::erase(run.tried, each);
  run.transient.clear();
  co_return true;
}

http::Task<> Dispatcher::try_target(Run& run, const Model& model, Choice choice) {
  const Call& call = run.call;
  Target& target = *choice.target;
  const TimePoint arrived = now();
  Result<LaneSlot> slot = co_await wait_for_slot(call, target.provider->lanes());
  const TimePoint began = now();
  AnswerFacts& facts = run.outcome.facts;
  facts.queued += began - arrived;
  call.waybill.stage(Stage::kLane, arrived, began);
  if (!slot) {
    target.circuit.abandoned(choice.pass);
    const ErrorCode code = slot.error().code;
    if (code == ErrorCode::kCancelled || code == ErrorCode::kDeadlineExceeded)
      co_return run.end(std::move(slot.error()));
    run.refused = std::move(slot.error());
    run.tried.push_back(&target);
    co_return;
  }
  if (call.gate != nullptr && facts.attempts == 0) {
    Status opened = co_await call.gate->open();
    if (!opened) {
      target.circuit.abandoned(choice.pass);
      co_return run.end(std::move(opened.error()));
    }
  }
  ++facts.attempts;
  facts.model = name_of(model, call);
  facts.target = target.model.empty() ? target.name + std::string(call.model) : target.name;
  AttemptResult result;
  {
    const InFlight in_flight(target.load);
    result = co_await attempt(call, target, run.reply, facts, resolver_, slot->rates());
  }
  const TimePoint ended = now();
  if (result.end == End::kAnswered) {
    slot->release(ended);
  } else {
    *slot = LaneSlot();
  }
  account(run, target, result, ended - began);

  switch (result.end) {
    case End::kAnswered:
      target.circuit.succeeded();
      run.outcome.status = result.status;
      run.outcome.body = std::move(result.body);
      run.outcome.began = call.request.stream();
      run.ended = true;
      co_return;
    case End::kAbandoned:
      target.circuit.abandoned(choice.pass);
      co_return run.end(cancelled());
    case End::kExpired:
      target.circuit.abandoned(choice.pass);
      co_return run.end(expired(fmt::format("while {} was at work", facts.target)));
    case End::kCut:
      target.circuit.failed(ended, choice.pass);
      run.outcome.began = true;
      if (result.expired) co_return run.end(expired(fmt::format("while {} was at work", facts.target)));
      co_return run.end(error_of(result.failure, facts.target, facts.attempts));
    case End::kFailed:
      break;
  }
  Failure& failure = result.failure;
  // Whatever is asked for by its own name may not be there, through no fault of the provider's.
  if (failure.status == 404 && target.model.empty()) failure.kind = FailureKind::kRefused;
  if (failure.kind == FailureKind::kRefused) {
    target.circuit.succeeded();
    run.outcome.status = failure.status >= 400 ? failure.status : 400;
    run.outcome.body = std::move(failure.body);
    co_return run.end({.code = ErrorCode::kInvalidInput, .message = std::move(failure.message), .field = {}});
  }
  if (failure.is_ill()) {
    target.circuit.failed(ended, choice.pass);
  } else {
    target.circuit.abandoned(choice.pass);
  }
  if (failure.retry_after) {
    target.circuit.cool(ended + *failure.retry_after);
  } else if (failure.status == 429 || failure.status == 529) {
    target.circuit.cool(ended + kUnsaidCooling / 2 +
                        Duration(static_cast<Duration::rep>(random() >> 1U) % kUnsaidCooling.count()));
  }
  run.tried.push_back(&target);
  if (failure.is_transient()) run.transient.push_back(&target);
  run.last = std::move(failure);
  run.last_target = facts.target;
}

// What an attempt has used, into the outcome and the metrics.
void Dispatcher::account(Run& run, const Target& target, const AttemptResult& result, Duration time) {
  metrics_.upstream_calls.with({target.name, result_name(result)}).add();
  // What the client's own deadline ends is no limit of the provider's.
  if (!result.failure.stage.empty() && result.end != End::kExpired && !result.expired)
    metrics_.upstream_timeouts.with({target.name, result.failure.stage}).add();
  metrics_.upstream_seconds.with({target.name}).observe(seconds(time));
  if (result.first_token > Duration::zero())
    metrics_.upstream_first_token_seconds.with({target.name}).observe(seconds(result.first_token));
  const Usage& used = result.usage;
  const std::uint64_t cost = run.catalog.cost_nano_usd(target, run.call.model, used);
  Usage& usage = run.outcome.usage;
  usage.prompt += used.prompt;
  usage.cached_prompt += used.cached_prompt;
  usage.completion += used.completion;
  run.outcome.cost_nano_usd += cost;
  // What is asked for by its own name could be anything: its target stands for it, "provider/".
  const std::string_view model =
      target.model.empty() ? std::string_view(target.name) : std::string_view(run.outcome.facts.model);
  if (used.prompt != 0) metrics_.tokens.with({model, "prompt"}).add(used.prompt);
  if (used.cached_prompt != 0) metrics_.tokens.with({model, "cached"}).add(used.cached_prompt);
  if (used.completion != 0) metrics_.tokens.with({model, "completion"}).add(used.completion);
  if (cost != 0) metrics_.cost_usd.with({model}).add(cost);
}

// No target is left that could be tried.
void Dispatcher::conclude(Run& run, const Model& model) {
  const TimePoint at = now();
  TimePoint soonest = TimePoint::max();
  bool cooling = false;
  for (const PoolMember& member : model.pool) {
    if (!member.target->circuit.is_callable(at)) soonest = std::min(soonest, member.target->circuit.when());
    cooling = cooling || member.target->circuit.is_cooling(at);
  }
  const Duration wait =
      soonest == TimePoint::max() ? Duration::zero() : std::max(Duration::zero(), soonest - at);
  if (run.last) {
    Error error = error_of(*run.last, run.last_target, run.attempts());
    if (run.out_of_retries) error.message += " (no more retries: gateway.retry_budget)";
    if (error.code == ErrorCode::kRateLimited && wait > Duration::zero()) error.retry_after = wait;
    return run.end(std::move(error));
  }
  if (run.refused) return run.end(std::move(*run.refused));
  Error error = {
      .code = cooling ? ErrorCode::kRateLimited : ErrorCode::kOverloaded,
      .message = fmt::format("No target of the model \"{}\" can be called now: {}.", name_of(model, run.call),
                             cooling ? "its providers have asked to be left alone for a while"
                                     : "all have failed too often and are tried again later"),
      .field = {},
      .retry_after = wait};
  run.end(std::move(error));
}

}  // namespace waybill::upstream
