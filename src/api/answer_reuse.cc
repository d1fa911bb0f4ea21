#include "api/answer_reuse.h"

#include <array>
#include <chrono>
#include <utility>

#include "api/durable_answer.h"
#include "api/error_answer.h"
#include "api/gateway.h"
#include "api/request_hash.h"

namespace waybill::api {
namespace {

using upstream::AnswerWay;
using upstream::Outcome;
using upstream::SharedAsk;

}  // namespace

// The part of the Idempotency-Key: whose answer may be there, or on its way.
class ReusedCall::Keyed final : public upstream::SharedCaller {
 public:
  explicit Keyed(ReusedCall& at) : at_(at) {}
  Status joined(AnswerWay way) override {
    if (way == AnswerWay::kShared && !at_.call_.deployment->config().jobs.wait_for_same_key) {
      at_.refusal_ = kKeyInUse;
      return std::unexpected(key_in_use());
    }
    at_.replayed_ = way != AnswerWay::kLed;
    return at_.replayed_ ? at_.pass_.admit_answered(at_.call_, at_.request_) : Status{};
  }
  http::Task<Outcome> lead(upstream::Reply& reply) override {
    return at_.gateway_->jobs() == nullptr ? at_.look_into_cache(reply) : at_.look_into_store(reply);
  }
  void abandon() override { at_.keyed_.request(); }

 private:
  ReusedCall& at_;
};

class ReusedCall::Cached final : public upstream::SharedCaller {
 public:
  explicit Cached(ReusedCall& at) : at_(at) {}
  Status joined(AnswerWay way) override {
    at_.cache_result_ = way == AnswerWay::kLed ? "miss" : way == AnswerWay::kShared ? "shared" : "hit";
    return way == AnswerWay::kLed ? Status{} : at_.pass_.admit_answered(at_.call_, at_.request_);
  }
  http::Task<Outcome> lead(upstream::Reply& reply) override { return at_.call_provider(reply); }
  void abandon() override { at_.cached_.request(); }

 private:
  ReusedCall& at_;
};

Status ReusedCall::prepare(upstream::Operation operation) {
  const http::Request& request = call_.request();
  const std::string_view caller = call_.caller == nullptr ? std::string_view() : call_.caller->name;
  // A job is its own record of what came of its key.
  const std::string_view key = call_.job == nullptr ? request.header("idempotency-key") : std::string_view();
  const std::string_view wish = request.header("x-waybill-cache");
  const config::ResponseCache& cache = choice_.model->config.cache;
  const bool caches = http::equal_names(wish, "use") || (cache.enabled && !http::equal_names(wish, "no"));
  if (cache.enabled && !caches) cache_result_ = "bypass";
  if (Status good = check_idempotency_key(key); !good) return good;
  if (key.empty() && !caches) return {};
  payload_ = hash_of(std::array{upstream::path_of(operation), std::string_view(request.body)});
  if (!key.empty()) idempotency_key_ = hash_of(std::array{caller, key});
  if (caches) {
    const std::string_view payload(reinterpret_cast<const char*>(&payload_), sizeof payload_);
    cache_key_ = hash_of(
        std::array{caller, std::string_view(choice_.model->name), std::string_view(choice_.asked), payload});
    cache_lifetime_ = cache.ttl;
  }
  return {};
}

http::Task<Outcome> ReusedCall::run(Gateway& gateway, const upstream::Call& asked, upstream::Reply& reply) {
  gateway_ = &gateway;
  asked_ = &asked;
  Outcome outcome;
  if (idempotency_key_) {
    const SharedAsk ask = {.key = *idempotency_key_,
                           .payload = payload_,
                           .lifetime = call_.deployment->config().jobs.idempotency_ttl,
                           .deadline = call_.deadline,
                           .cancellation = client_,
                           .loop = asked.loop};
    Keyed keyed(*this);
    outcome = co_await gateway.answers().keyed().run(ask, keyed, reply);
  } else {
    outcome = co_await look_into_cache(reply);
  }
  pass_.settle(outcome);
  if (outcome.cost_nano_usd != 0) {
    telemetry::ProgramMetrics& metrics = gateway.telemetry().metrics();
    if (call_.caller != nullptr) metrics.key_cost_usd.with({call_.caller->name}).add(outcome.cost_nano_usd);
    if (!choice_.route.empty()) metrics.route_cost_usd.with({choice_.route}).add(outcome.cost_nano_usd);
  }
  if (refusal_.status != 0) tell_refusal(outcome);
  if (outcome.facts.attempts == 0 && !outcome.facts.target.empty())
    call_.waybill.upstream({.target = outcome.facts.target});
  const std::string_view result = replayed_ ? std::string_view("replayed") : cache_result_;
  if (!result.empty()) gateway.telemetry().metrics().response_cache.with({result}).add();
  co_return outcome;
}

http::Task<Outcome> ReusedCall::look_into_store(upstream::Reply& reply) {
  Outcome outcome;
  DurableAnswer record(*gateway_, call_, asked_->operation, keyed_);
  const auto ttl = call_.deployment->config().jobs.idempotency_ttl;
  const store::IdempotencyKey key = {
      .key = *idempotency_key_,
      .payload = payload_,
      .until = jobs::store_now() + std::chrono::duration_cast<std::chrono::microseconds>(ttl).count()};
  Result<std::optional<store::JobResult>> had = co_await record.begin(key);
  if (!had) {
    refusal_ = record.refusal();
    outcome.error = std::move(had.error());
    co_return outcome;
  }
  if (*had) {
    replayed_ = true;
    if (Status admitted = pass_.admit_answered(call_, request_); !admitted) {
      outcome.error = std::move(admitted.error());
    } else {
      outcome = co_await replay(**had, reply);
    }
    co_return outcome;
  }
  RecordingReply recording(reply, asked_->max_answer_bytes);
  outcome = co_await look_into_cache(recording);
  co_await record.end(outcome, recording.events(), recording.all());
  co_return outcome;
}

void ReusedCall::tell_refusal(Outcome& outcome) const {
  http::Response told;
  write_error(*outcome.error, {refusal_.status, "invalid_request_error", refusal_.code}, told);
  outcome.status = told.status;
  outcome.body = std::move(told.body);
}

http::Task<Outcome> ReusedCall::look_into_cache(upstream::Reply& reply) {
  Outcome outcome;
  if (cache_key_) {
    const SharedAsk ask = {.key = *cache_key_,
                           .payload = payload_,
                           .lifetime = cache_lifetime_,
                           .deadline = call_.deadline,
                           .cancellation = idempotency_key_ ? keyed_ : client_,
                           .loop = asked_->loop};
    Cached cached(*this);
    outcome = co_await gateway_->answers().cached().run(ask, cached, reply);
  } else {
    outcome = co_await call_provider(reply);
  }
  co_return outcome;
}

http::Task<Outcome> ReusedCall::call_provider(upstream::Reply& reply) {
  Outcome outcome;
  if (Status admitted = pass_.admit(call_, request_, *choice_.model); !admitted) {
    outcome.error = std::move(admitted.error());
    co_return outcome;
  }
  outcome = co_await gateway_->dispatcher().run(*asked_, *call_.deployment->catalog, *choice_.model, reply);
  co_return outcome;
}

void ReusedCall::add_headers(http::Response& response) const {
  if (replayed_) {
    response.add_header("Idempotent-Replayed", "true");
  } else if (!cache_result_.empty()) {
    response.add_header("x-waybill-cache", cache_result_);
  }
}

}  // namespace waybill::api
