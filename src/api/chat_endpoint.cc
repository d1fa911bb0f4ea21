// POST /v1/chat/completions and /v1/completions: a model answers, at once or as a stream.
#include <utility>

#include "api/answer_later.h"
#include "api/answer_reuse.h"
#include "api/endpoint.h"
#include "api/gateway.h"
#include "api/model_answer.h"
#include "api/model_choice.h"
#include "api/text_work.h"
#include "upstream/chat_request.h"

namespace waybill::api {
namespace {

using upstream::AnswerFacts;
using upstream::Operation;

void add_choice_headers(const ModelChoice& choice, http::Response& response) {
  if (!choice.route.empty()) response.add_header("x-waybill-route", choice.route);
  if (choice.tier.empty()) return;
  response.add_header("x-waybill-tier", choice.tier);
  if (choice.score > 0) response.add_header("x-waybill-score", static_cast<double>(choice.score), 4);
}

void add_fact_headers(const AnswerFacts& facts, http::Response& response) {
  if (facts.model.empty()) return;
  response.add_header("x-waybill-model", facts.model);
  response.add_header("x-waybill-target", facts.target);
  response.add_header("x-waybill-attempts", std::uint64_t{facts.attempts});
  response.add_header("x-waybill-queue-ms", seconds(facts.queued) * 1000, 3);
}

// A stream, on the connection that asked for it.
class ExchangeReply final : public upstream::Reply {
 public:
  ExchangeReply(Call& call, const ModelChoice& choice, const ReusedCall& reused)
      : call_(call), choice_(choice), reused_(reused) {}

  void begin(const AnswerFacts& facts) override {
    http::Response& response = call_.response();
    response.content_type = "text/event-stream; charset=utf-8";
    response.add_header("Cache-Control", "no-cache");
    response.add_header("X-Accel-Buffering", "no");  // a proxy in between is not to hold frames back
    add_choice_headers(choice_, response);
    add_fact_headers(facts, response);
    reused_.add_headers(response);
    add_id_headers(call_);
  }
  http::Task<bool> write(std::string_view events) override { return call_.exchange.write_body(events); }

 private:
  Call& call_;
  const ModelChoice& choice_;
  const ReusedCall& reused_;
};

void write_answer(const upstream::Outcome& outcome, const ModelChoice& choice, std::string body, Call& call) {
  http::Response& response = call.response();
  add_choice_headers(choice, response);
  add_fact_headers(outcome.facts, response);
  response.add_header("x-waybill-cost-usd", static_cast<double>(outcome.cost_nano_usd) * 1e-9, 9);
  response.status = outcome.status;
  response.body = std::move(body);
}

}  // namespace

upstream::Lane lane_of(const http::Request& request) noexcept {
  return http::equal_names(request.header("x-waybill-lane"), "batch") ? upstream::Lane::kBatch
                                                                      : upstream::Lane::kInteractive;
}

http::Task<Status> answer_by_model(Gateway& gateway, Call& call, Operation operation) {
  upstream::ChatRequest request;
  auto parse = [&]() -> Status { return request.parse(operation, call.request().body); };
  Status status = co_await read_body(call, parse);
  if (!status) co_return status;
  call.waybill.stage(telemetry::Stage::kAdmit, call.request().received, std::chrono::steady_clock::now());
  std::optional<Status> later = co_await answer_later(gateway, call, operation);
  if (later) co_return *later;
  Result<ModelChoice> choice = co_await choose_model(gateway, call, request);
  if (!choice) co_return std::unexpected(std::move(choice.error()));
  later = co_await promote(gateway, call, operation, *choice);
  if (later) co_return *later;

  ReusedCall reused(call, request, *choice);
  if (Status prepared = reused.prepare(operation); !prepared) co_return prepared;
  http::Exchange& exchange = call.exchange;
  exchange.watch_for_hang_up([&reused] { reused.hang_up(); });
  if (exchange.cancelled()) reused.hang_up();
  const std::string id = to_string(call.waybill.id());
  const config::Gateway& settings = call.deployment->config().gateway;
  const upstream::Call asked = {
      .operation = operation,
      .request = request,
      .model = choice->asked,
      .lane = lane_of(call.request()),
      .deadline = call.deadline,
      .finish_abandoned = call.job == nullptr && choice->model->config.finish_abandoned,
      .max_answer_bytes = settings.max_answer_bytes,
      .caller = call.caller == nullptr ? std::string_view() : std::string_view(call.caller->name),
      .idempotency_key =
          call.job == nullptr ? call.request().header("idempotency-key") : call.job->idempotency_key,
      .request_id = id,
      .traceparent = call.request().header("traceparent"),
      .tracestate = call.request().header("tracestate"),
      .gate = call.job == nullptr ? nullptr : &call.job->gate,
      .cancellation = reused.cancellation(),
      .loop = exchange.loop(),
      .waybill = call.waybill,
  };
  ExchangeReply reply(call, *choice, reused);
  const char* activity = exchange.loop().set_activity(nullptr);
  upstream::Outcome outcome = co_await reused.run(gateway, asked, reply);
  exchange.loop().set_activity(activity);
  if (exchange.body_begun()) {
    if (outcome.error) co_return std::unexpected(std::move(*outcome.error));
    co_return Status{};
  }
  reused.add_headers(call.response());
  if (outcome.error && outcome.body.empty()) {
    add_choice_headers(*choice, call.response());
    add_fact_headers(outcome.facts, call.response());
    co_return std::unexpected(std::move(*outcome.error));
  }
  std::string body = std::move(outcome.body);
  write_answer(outcome, *choice, std::move(body), call);
  if (!outcome.error) co_return Status{};
  call.has_answer = true;  // the provider's own words on what is wrong with the request
  co_return std::unexpected(std::move(*outcome.error));
}

http::Task<Status> chat(Gateway& gateway, Call& call) {
  return answer_by_model(gateway, call, Operation::kChat);
}
http::Task<Status> complete(Gateway& gateway, Call& call) {
  return answer_by_model(gateway, call, Operation::kCompletions);
}

}  // namespace waybill::api
