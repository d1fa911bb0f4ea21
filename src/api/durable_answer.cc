#include "api/durable_answer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "api/error_answer.h"
#include "api/gateway.h"
#include "api/job_attributes.h"
#include "api/job_wait.h"
#include "base/json_writer.h"
#include "upstream/json_scanner.h"

namespace waybill::api {
namespace {

using store::State;
using upstream::Outcome;

constexpr int kMostTries = 5;                      // when records come and go meanwhile
constexpr std::size_t kPiece = 64U << 10;          // of a stream that is sent again
constexpr auto kBeyond = std::chrono::minutes(1);  // the record outlives the call's deadline by
constexpr std::string_view kStream = "text/event-stream";

TimePoint now() noexcept { return std::chrono::steady_clock::now(); }

bool is_of_provider(ErrorCode code) noexcept {
  return code == ErrorCode::kInvalidInput || code == ErrorCode::kUpstreamFailed ||
         code == ErrorCode::kUpstreamTimeout;
}

std::string facts_of(const Outcome& outcome) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("model").string(outcome.facts.model).key("target").string(outcome.facts.target);
  json.key("cost_usd").number(static_cast<double>(outcome.cost_nano_usd) * 1e-9, 9);
  json.key("prompt_tokens").integer(outcome.usage.prompt);
  json.key("completion_tokens").integer(outcome.usage.completion).end_object();
  return text;
}

upstream::AnswerFacts read_facts(std::string_view text) {
  upstream::AnswerFacts facts;
  upstream::JsonScanner json(text);
  if (!json.enter_object()) return facts;
  for (upstream::JsonString key, value; json.next_member(key);) {
    if (!json.read(value)) {
      json.skip();
    } else if (key.is("model")) {
      value.append_to(facts.model);
    } else if (key.is("target")) {
      value.append_to(facts.target);
    }
  }
  return facts;
}

store::JobResult result_of(const Outcome& outcome, std::string_view events) {
  store::JobResult result = {.status = outcome.status,
                             .content_type = "application/json",
                             .body = outcome.body,
                             .facts = facts_of(outcome)};
  if (outcome.began) {
    result.content_type = kStream;
    result.body = events;
  }
  if (!outcome.error) return result;
  const Problem problem = problem_of(outcome.error->code);
  if (outcome.began || outcome.body.empty()) result.status = problem.status;
  if (!outcome.began && outcome.body.empty()) {
    http::Response told;
    write_error(*outcome.error, problem, told);
    result.body = std::move(told.body);
  }
  return result;
}

}  // namespace

Error key_in_use() {
  return {.code = ErrorCode::kOverloaded,
          .message = "A call with this Idempotency-Key is under way; ask again when it has ended.",
          .field = "Idempotency-Key"};
}

http::Task<Result<std::optional<store::JobResult>>> DurableAnswer::begin(const store::IdempotencyKey& key) {
  jobs::Service& service = *gateway_.jobs();
  http::EventLoop& loop = call_.exchange.loop();
  const Duration length = std::max(Duration::zero(), call_.deadline - now()) + kBeyond;
  for (int tries = 0; tries < kMostTries; ++tries) {
    store::Submit submit;
    submit.queue = jobs::kCallQueue;
    submit.caller = call_.caller == nullptr ? std::string() : call_.caller->name;
    submit.endpoint = "/v1";
    submit.endpoint += upstream::path_of(operation_);
    submit.max_receives = 1;
    submit.key = key;
    submit.running_until =
        jobs::store_now() + std::chrono::duration_cast<std::chrono::microseconds>(length).count();
    JobAttributes attributes;
    attributes.idempotency_key = call_.request().header("idempotency-key");
    attributes.correlation_id = call_.request().header("x-correlation-id");
    submit.attributes = write_attributes(attributes);
    Result<store::Submit::Reply> reply = co_await service.commit(std::move(submit), loop);
    if (!reply) co_return std::unexpected(std::move(reply.error()));
    if (reply->how == store::Submit::How::kNew) {
      lease_ = {.id = reply->id, .fence = reply->fence};
      co_return std::nullopt;
    }
    if (reply->how == store::Submit::How::kKeyReused) {
      co_return fail(ErrorCode::kKeyReused,
                     "This Idempotency-Key came with another request before; use a new one.",
                     "Idempotency-Key");
    }
    auto find = [id = reply->id](store::Store& from) { return from.find(id); };
    Result<std::optional<store::Job>> found = co_await service.read(loop, find);
    if (!found) co_return std::unexpected(std::move(found.error()));
    if (!*found) continue;
    store::Job job = std::move(**found);
    const bool is_call = job.queue == jobs::kCallQueue;
    if (job.state == State::kRunning || (!is_call && !is_terminal(job.state))) {
      Result<store::Job> ended = co_await wait_for(job);
      if (!ended) co_return std::unexpected(std::move(ended.error()));
      job = std::move(*ended);
    }
    if (job.state == State::kCompleted || job.state == State::kFailed) {
      auto read = [id = job.id](store::Store& from) { return from.result(id); };
      Result<std::optional<store::JobResult>> result = co_await service.read(loop, read);
      if (!result) co_return std::unexpected(std::move(result.error()));
      if (*result) co_return result;
    }
    if (!is_call && !job.id.is_nil()) {
      refusal_ = {410, "job_without_answer"};
      co_return fail(ErrorCode::kOverloaded,
                     "The job of this Idempotency-Key has ended without an answer; use a new key.",
                     "Idempotency-Key");
    }
    co_await forget(reply->id);  // nobody knows what became of it
  }
  co_return fail(ErrorCode::kOverloaded,
                 "Many come with this Idempotency-Key at once; send it again in a moment.");
}

// A job that is not there any more comes back as one without an id.
http::Task<Result<store::Job>> DurableAnswer::wait_for(const store::Job& job) {
  jobs::Service& service = *gateway_.jobs();
  http::EventLoop& loop = call_.exchange.loop();
  if (!call_.deployment->config().jobs.wait_for_same_key) {
    refusal_ = kKeyInUse;
    co_return std::unexpected(key_in_use());
  }
  JobWait wait(gateway_, loop, cancellation_);
  const jobs::Hub::Subscription news =
      service.hub().watch(job.id, loop, [wake = wait.waker()](const store::Change& change) {
        if (change.state != State::kRunning || change.removed) wake();
      });
  for (;;) {
    auto find = [id = job.id](store::Store& from) { return from.find(id); };
    Result<std::optional<store::Job>> found = co_await service.read(loop, find);
    if (!found) co_return std::unexpected(std::move(found.error()));
    if (!*found) co_return store::Job();
    const bool is_call = (*found)->queue == jobs::kCallQueue;
    const bool goes_on = is_call ? (*found)->state == State::kRunning : !is_terminal((*found)->state);
    if (!goes_on) co_return std::move(**found);
    const JobWait::End end = co_await wait.wait(call_.deadline);
    if (end == JobWait::End::kGone) co_return fail(ErrorCode::kCancelled, "The client went away.");
    if (end == JobWait::End::kStopping)
      co_return fail(ErrorCode::kShuttingDown, "The server is being stopped; ask again.");
    if (end == JobWait::End::kTime) {
      co_return fail(ErrorCode::kDeadlineExceeded,
                     "The request's deadline passed while an equal one was under way.");
    }
  }
}

http::Task<> DurableAnswer::end(const Outcome& outcome, std::string_view events, bool all) {
  const bool keep = all && (!outcome.error || is_of_provider(outcome.error->code));
  if (!keep) {
    co_await forget(lease_.id);
    co_return;
  }
  store::Finish finish;
  finish.lease = lease_;
  finish.result = result_of(outcome, events);
  finish.state = finish.result.status < 400 ? State::kCompleted : State::kFailed;
  Result<store::Held> held = co_await gateway_.jobs()->commit(std::move(finish), call_.exchange.loop());
  if (held && *held == store::Held::kDone) co_return;
  gateway_.telemetry().log().warn(
      "the answer of a call with an Idempotency-Key could not be kept: who sends it again makes another call",
      {{"why", held ? std::string("its record was given up") : held.error().message}});
}

http::Task<> DurableAnswer::forget(Uuid id) {
  http::EventLoop& loop = call_.exchange.loop();
  const store::Cancel cancel = {.id = id};
  (void)co_await gateway_.jobs()->commit(cancel, loop);
  const store::Remove remove = {.id = id};
  (void)co_await gateway_.jobs()->commit(remove, loop);
}

http::Task<Outcome> replay(const store::JobResult& result, upstream::Reply& reply) {
  Outcome outcome;
  outcome.facts = read_facts(result.facts);
  const bool streams = result.content_type.starts_with(kStream);
  if (result.status >= 400) {
    outcome.error =
        Error{.code = result.status >= 500 ? ErrorCode::kUpstreamFailed : ErrorCode::kInvalidInput,
              .message = "The answer to the first call with this key was an error.",
              .field = {}};
  }
  if (!streams) {
    outcome.status = result.status;
    outcome.body = result.body;
    co_return outcome;
  }
  outcome.began = true;
  reply.begin(outcome.facts);
  const std::string_view events = result.body;
  for (std::size_t at = 0; at < events.size(); at += kPiece) {
    const bool taken = co_await reply.write(events.substr(at, kPiece));
    if (!taken) {
      outcome.error = Error{.code = ErrorCode::kCancelled, .message = "The client went away.", .field = {}};
      co_return outcome;
    }
  }
  co_return outcome;
}

http::Task<bool> RecordingReply::write(std::string_view events) {
  all_ = all_ && events_.size() + events.size() <= most_;
  if (all_) {
    events_.append(events);
  } else {
    events_.clear();
  }
  const bool taken = co_await to_.write(events);
  co_return taken;
}

}  // namespace waybill::api
