// POST /v1/embeddings, in OpenAI's shape, by the encoder in this program.
#include <cmath>

#include "api/answer_later.h"
#include "api/await.h"
#include "api/embedding_request.h"
#include "api/endpoint.h"
#include "api/gateway.h"
#include "api/json_body.h"
#include "api/model_answer.h"
#include "api/text_work.h"
#include "base/base64.h"
#include "base/json_writer.h"

namespace waybill::api {
namespace {

using telemetry::Stage;

// The first `dimensions` of each, brought back to length 1: what OpenAI does for models that were trained for
// it.
std::size_t shorten(embed::EmbeddingAnswer& answer, std::size_t dimensions) {
  if (dimensions == 0 || dimensions == answer.dim) return answer.dim;
  for (std::size_t i = 0; i < answer.tokens.size(); ++i) {
    const float* from = answer.embeddings.data() + i * answer.dim;
    float* to = answer.embeddings.data() + i * dimensions;
    double square = 0;
    for (std::size_t d = 0; d < dimensions; ++d)
      square += static_cast<double>(from[d]) * static_cast<double>(from[d]);
    const float scale = square > 0 ? static_cast<float>(1 / std::sqrt(square)) : 0.0F;
    for (std::size_t d = 0; d < dimensions; ++d) to[d] = from[d] * scale;
  }
  return dimensions;
}

void write_answer(const embed::EmbeddingAnswer& answer, std::size_t dim, bool as_base64,
                  std::string_view model, std::string& out) {
  out.reserve(answer.tokens.size() * dim * (as_base64 ? 6 : 13) + 256);
  std::uint64_t tokens = 0;
  JsonWriter json(out);
  json.begin_object().key("object").string("list").key("data").begin_array();
  for (std::size_t i = 0; i < answer.tokens.size(); ++i) {
    tokens += answer.tokens[i];
    const std::span<const float> embedding(answer.embeddings.data() + i * dim, dim);
    json.begin_object().key("object").string("embedding").key("index").integer(static_cast<std::int64_t>(i));
    json.key("embedding");
    if (as_base64) {
      json.string(base64(std::as_bytes(embedding)));
    } else {
      json.floats(embedding);
    }
    json.end_object();
  }
  json.end_array().key("model").string(model).key("usage").begin_object();
  json.key("prompt_tokens").integer(static_cast<std::int64_t>(tokens));
  json.key("total_tokens").integer(static_cast<std::int64_t>(tokens)).end_object().end_object();
}

void record(telemetry::Waybill& waybill, const embed::EmbeddingAnswer& answer) {
  std::uint32_t tokens = 0;
  for (const std::uint32_t each : answer.tokens) tokens += each;
  waybill.tokens(tokens);
  waybill.stage(Stage::kTokenize, answer.timing.arrived, answer.timing.tokenized);
  waybill.stage(Stage::kQueue, answer.timing.queued, answer.timing.started);
  waybill.stage(Stage::kEncode, answer.timing.started, answer.timing.finished);
}

}  // namespace

http::Task<Status> embed(Gateway& gateway, Call& call) {
  // A model of a provider by its name; everything else is for the encoder here.
  if (!call.deployment->catalog->empty()) {
    upstream::ChatRequest asked;
    auto parse = [&]() -> Status {
      return asked.parse(upstream::Operation::kEmbeddings, call.request().body);
    };
    Status parsed = co_await read_body(call, parse);
    const bool elsewhere = parsed && asked.model() != call.deployment->engine->model_name() &&
                           call.deployment->catalog->find(asked.model()).model != nullptr;
    if (elsewhere) {
      Status answered = co_await answer_by_model(gateway, call, upstream::Operation::kEmbeddings);
      co_return answered;
    }
  }
  if (Status encoder = check_encoder(*call.deployment); !encoder) co_return encoder;
  std::optional<Status> later = co_await answer_later(gateway, call, upstream::Operation::kEmbeddings);
  if (later) co_return *later;
  JsonBody body;
  const route::Engine& engine = *call.deployment->engine;
  EmbeddingRequest wanted;
  const auto max_inputs = static_cast<std::size_t>(call.deployment->config().server.max_inputs);
  auto read = [&]() -> Status {
    if (Status parsed = body.parse(call.request().body); !parsed) return parsed;
    return read_embedding_request(body, engine.model_name(), engine.embedding_model().dim(), max_inputs,
                                  wanted);
  };
  Status status = co_await read_body(call, read);
  if (!status) co_return status;
  call.waybill.stage(Stage::kAdmit, call.request().received, std::chrono::steady_clock::now());
  const embed::EmbeddingCall asked = {.inputs = wanted.inputs,
                                      .deadline = call.deadline,
                                      .executor = &call.exchange.loop(),
                                      .cancelled = &call.exchange.cancelled()};
  auto start = [&engine, &asked](embed::EmbeddingService::Completion&& done) {
    return engine.embeddings().embed(asked, std::move(done));
  };
  Result<embed::EmbeddingAnswer> answer = co_await await_answer<embed::EmbeddingAnswer>(call.exchange, start);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  record(call.waybill, *answer);
  auto write = [&]() -> Status {
    const std::size_t dim = shorten(*answer, wanted.dimensions);
    write_answer(*answer, dim, wanted.base64, engine.model_name(), call.response().body);
    return {};
  };
  if (answer->embeddings.size() <= kFewNumbers) co_return write();
  co_return co_await on_text_thread_or_here(call, write);
}

}  // namespace waybill::api
