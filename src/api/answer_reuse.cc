#include "api/answer_reuse.h"

#include <array>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/hash.h"

namespace waybill::api {
namespace {

using upstream::AnswerWay;
using upstream::Outcome;
using upstream::SharedAsk;

constexpr std::size_t kMostKeyBytes = 255;
constexpr Duration kKeyLifetime = std::chrono::hours(24);

// A cryptographic hash: who can guess keys must not be able to make two of them meet. Each part with its
// length, so that no two lists of parts read the same.
Hash128 hash_of(std::span<const std::string_view> parts) {
  std::string digests;
  for (const std::string_view part : parts) {
    const Sha256 digest = sha256(std::as_bytes(std::span(part)));
    digests.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  }
  const Sha256 digest = sha256(std::as_bytes(std::span(digests)));
  Hash128 hash;
  std::memcpy(&hash.low, digest.data(), sizeof hash.low);
  std::memcpy(&hash.high, digest.data() + sizeof hash.low, sizeof hash.high);
  return hash;
}

}  // namespace

// The part of the Idempotency-Key: whose answer may be there, or on its way.
class ReusedCall::Keyed final : public upstream::SharedCaller {
 public:
  explicit Keyed(ReusedCall& at) : at_(at) {}
  Status joined(AnswerWay way) override {
    at_.replayed_ = way != AnswerWay::kLed;
    return at_.replayed_ ? at_.pass_.admit_answered(at_.call_, at_.request_) : Status{};
  }
  http::Task<Outcome> lead(upstream::Reply& reply) override { return at_.look_into_cache(reply); }
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
  const std::string_view key = request.header("idempotency-key"), wish = request.header("x-waybill-cache");
  const config::ResponseCache& cache = choice_.model->config.cache;
  const bool caches = http::equal_names(wish, "use") || (cache.enabled && !http::equal_names(wish, "no"));
  if (cache.enabled && !caches) cache_result_ = "bypass";
  if (key.size() > kMostKeyBytes) {
    return fail(
        ErrorCode::kInvalidInput,
        fmt::format("An Idempotency-Key has at most {} bytes; this one has {}.", kMostKeyBytes, key.size()),
        "Idempotency-Key");
  }
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

http::Task<Outcome> ReusedCall::run(AnswerStore& store, upstream::Dispatcher& dispatcher,
                                    telemetry::ProgramMetrics& metrics, const upstream::Call& asked,
                                    upstream::Reply& reply) {
  store_ = &store;
  dispatcher_ = &dispatcher;
  asked_ = &asked;
  Outcome outcome;
  if (idempotency_key_) {
    const SharedAsk ask = {.key = *idempotency_key_,
                           .payload = payload_,
                           .lifetime = kKeyLifetime,
                           .deadline = call_.deadline,
                           .cancellation = client_,
                           .loop = asked.loop};
    Keyed keyed(*this);
    outcome = co_await store.keyed().run(ask, keyed, reply);
  } else {
    outcome = co_await look_into_cache(reply);
  }
  pass_.settle(outcome);
  if (outcome.facts.attempts == 0 && !outcome.facts.target.empty())
    call_.waybill.upstream({.target = outcome.facts.target});
  const std::string_view result = replayed_ ? std::string_view("replayed") : cache_result_;
  if (!result.empty()) metrics.response_cache.with({result}).add();
  co_return outcome;
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
    outcome = co_await store_->cached().run(ask, cached, reply);
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
  outcome = co_await dispatcher_->run(*asked_, *call_.deployment->catalog, *choice_.model, reply);
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
