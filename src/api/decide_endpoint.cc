// POST /route and /v1/route: which route, and so which model, a prompt takes.
#include <vector>

#include "api/await.h"
#include "api/decision_record.h"
#include "api/endpoint.h"
#include "api/gateway.h"
#include "api/json_body.h"
#include "api/question.h"
#include "api/text_work.h"
#include "base/json_writer.h"

namespace waybill::api {
namespace {

using route::Decision;

void write_decision(JsonWriter& json, const Decision& decision) {
  json.key("route").string(decision.route).key("model").string(decision.model);
  json.key("score")
      .number(static_cast<double>(decision.score), 4)
      .key("tier")
      .string(to_string(decision.tier));
  json.key("degraded").boolean(decision.degraded).key("reason").string(to_string(decision.reason));
  if (!decision.rule.empty()) json.key("rule").string(decision.rule);
}

void write_explanation(JsonWriter& json, const route::Router& router, const route::Explanation& explanation) {
  json.key("threshold").number(static_cast<double>(explanation.threshold), 4).key("runners_up").begin_array();
  for (const route::ScoredRoute& scored : explanation.runners_up) {
    json.begin_object().key("route").string(router.routes()[scored.route].name);
    json.key("score").number(static_cast<double>(scored.score), 4).end_object();
  }
  json.end_array().key("nearest").begin_array();
  for (const route::NearestUtterance& near : explanation.nearest) {
    json.begin_object().key("route").string(router.routes()[near.route].name).key("text").string(near.text);
    json.key("similarity").number(static_cast<double>(near.similarity), 4).end_object();
  }
  json.end_array();
}

void write_decisions(const std::vector<route::DecisionAnswer>& answers, std::string_view id,
                     std::string& out) {
  JsonWriter json(out);
  json.begin_object().key("object").string("list").key("data").begin_array();
  std::int64_t index = 0;
  for (const route::DecisionAnswer& answer : answers) {
    json.begin_object().key("index").integer(index++);
    write_decision(json, answer.decision);
    json.end_object();
  }
  json.end_array().key("request_id").string(id).end_object();
}

route::DecisionCall decision_call(Call& call, const Question& question) {
  return {.prompt = question.prompt.value_or(std::string_view()),
          .deadline = call.deadline,
          .executor = &call.exchange.loop(),
          .cancelled = &call.exchange.cancelled(),
          .allow_degraded = question.allow_degraded};
}

http::Task<Status> decide_one(Call& call, const Question& question, std::string_view id) {
  route::DecisionService& service = call.deployment->engine->decisions();
  const route::DecisionCall asked = decision_call(call, question);
  auto start = [&service, &asked](route::DecisionService::Completion&& done) {
    return service.decide(asked, std::move(done));
  };
  Result<route::DecisionAnswer> answer = co_await await_answer<route::DecisionAnswer>(call.exchange, start);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  record_decision(call.waybill, answer->decision, answer->timing);
  JsonWriter json(call.response().body);
  json.begin_object();
  write_decision(json, answer->decision);
  json.key("request_id").string(id).end_object();
  co_return Status{};
}

http::Task<Status> explain_one(Call& call, const Question& question, std::string_view id) {
  const route::Engine& engine = *call.deployment->engine;
  const route::DecisionCall asked = decision_call(call, question);
  auto start = [&engine, &asked](route::DecisionService::ExplanationCompletion&& done) {
    return engine.decisions().explain(asked, {}, std::move(done));
  };
  Result<route::ExplanationAnswer> answer =
      co_await await_answer<route::ExplanationAnswer>(call.exchange, start);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  record_decision(call.waybill, answer->explanation.decision, answer->timing);
  JsonWriter json(call.response().body);
  json.begin_object();
  write_decision(json, answer->explanation.decision);
  write_explanation(json, engine.router(), answer->explanation);
  json.key("request_id").string(id).end_object();
  co_return Status{};
}

http::Task<Status> decide_all(Call& call, const Question& question, std::string_view id) {
  using Answers = std::vector<route::DecisionAnswer>;
  route::DecisionService& service = call.deployment->engine->decisions();
  const route::CallOptions options = {.deadline = call.deadline,
                                      .executor = &call.exchange.loop(),
                                      .cancelled = &call.exchange.cancelled(),
                                      .allow_degraded = question.allow_degraded};
  auto start = [&](route::DecisionService::BatchCompletion&& done) {
    return service.decide_all(question.inputs, options, std::move(done));
  };
  Result<Answers> answers = co_await await_answer<Answers>(call.exchange, start);
  if (!answers) co_return std::unexpected(std::move(answers.error()));
  std::uint32_t tokens = 0, degraded = 0;
  for (const route::DecisionAnswer& answer : *answers) {
    tokens += answer.timing.tokens;
    degraded += answer.decision.degraded ? 1 : 0;
  }
  call.waybill.tokens(tokens);
  call.waybill.degraded(degraded);
  auto write = [&]() -> Status {
    write_decisions(*answers, id, call.response().body);
    return {};
  };
  if (answers->size() <= kFewDecisions) co_return write();
  co_return co_await on_text_thread_or_here(call, write);
}

}  // namespace

http::Task<Status> decide(Gateway& /*gateway*/, Call& call) {
  if (Status encoder = check_encoder(*call.deployment); !encoder) co_return encoder;
  JsonBody body;
  Question question;
  const auto max_inputs = static_cast<std::size_t>(call.deployment->config().server.max_inputs);
  auto read = [&]() -> Status {
    if (Status parsed = body.parse(call.request().body); !parsed) return parsed;
    return read_question(body, max_inputs, question);
  };
  Status status = co_await read_body(call, read);
  if (!status) co_return status;
  if (question.timeout_ms) {
    call.deadline =
        std::min(call.deadline, call.request().started + std::chrono::milliseconds(*question.timeout_ms));
  }
  call.waybill.stage(telemetry::Stage::kAdmit, call.request().received, std::chrono::steady_clock::now());
  const std::string id = to_string(call.waybill.id());
  if (!question.inputs.empty()) {
    status = co_await decide_all(call, question, id);
  } else if (question.explain) {
    status = co_await explain_one(call, question, id);
  } else {
    status = co_await decide_one(call, question, id);
  }
  co_return status;
}

}  // namespace waybill::api
