// POST /v1/embeddings, in OpenAI's shape, by the encoder in this program.
#include <cmath>
#include <vector>

#include <boost/json/array.hpp>
#include <fmt/format.h>

#include "api/await.h"
#include "api/base64.h"
#include "api/endpoint.h"
#include "api/gateway.h"
#include "api/json_body.h"
#include "base/json_writer.h"

namespace waybill::api {
namespace {

namespace json = boost::json;
using embed::EmbeddingInput;
using embed::TokenId;
using telemetry::Stage;

// What a request asks for. Texts point into the JsonBody, ids into `ids`.
struct Wanted {
  std::vector<EmbeddingInput> inputs;
  std::vector<std::vector<TokenId>> ids;
  std::size_t dimensions = 0;  // 0: all
  bool base64 = false;
};

Status read_ids(const json::array& array, const std::string& field, Wanted& wanted) {
  std::vector<TokenId>& ids = wanted.ids.emplace_back();
  ids.reserve(array.size());
  for (const json::value& each : array) {
    boost::system::error_code error;
    const auto id = each.is_number() ? each.to_number<TokenId>(error) : TokenId{-1};
    if (error || id < 0) return wrong_type(field, "an array of token ids (whole numbers)", each);
    ids.push_back(id);
  }
  wanted.inputs.emplace_back(std::span<const TokenId>(ids));
  return {};
}

// OpenAI takes a string, an array of strings, an array of token ids, or an array of such arrays.
Status read_inputs(const json::value& value, std::size_t most, Wanted& wanted) {
  if (const json::string* text = value.if_string()) {
    wanted.inputs.emplace_back(std::string_view(text->data(), text->size()));
    return {};
  }
  const json::array* array = value.if_array();
  if (array == nullptr) return wrong_type("input", "a string, or an array of strings or of token ids", value);
  if (array->empty())
    return fail(ErrorCode::kInvalidInput, "\"input\" is empty; give at least one text.", "input");
  if (array->front().is_number()) return read_ids(*array, "input", wanted);
  if (array->size() > most) {
    return fail(ErrorCode::kInvalidInput,
                fmt::format("\"input\" has {} entries; at most {} are taken at once (server.max_inputs).",
                            array->size(), most),
                "input");
  }
  wanted.ids.reserve(array->size());  // inputs point into its elements
  for (std::size_t i = 0; i < array->size(); ++i) {
    const json::value& each = (*array)[i];
    const std::string field = fmt::format("input[{}]", i);
    if (const json::string* text = each.if_string()) {
      wanted.inputs.emplace_back(std::string_view(text->data(), text->size()));
    } else if (const json::array* ids = each.if_array()) {
      if (Status read = read_ids(*ids, field, wanted); !read) return read;
    } else {
      return wrong_type(field, "a string or an array of token ids", each);
    }
  }
  return {};
}

Status read_wanted(const JsonBody& body, const route::Engine& engine, std::size_t max_inputs,
                   Wanted& wanted) {
  const auto model = body.text("model");
  if (!model) return std::unexpected(model.error());
  if (*model && **model != engine.model_name()) {
    return fail(ErrorCode::kNotFound,
                fmt::format("There is no embedding model \"{}\" here; use \"{}\".",
                            model->value().substr(0, 100), engine.model_name()),
                "model");
  }
  const auto format = body.text("encoding_format");
  if (!format) return std::unexpected(format.error());
  if (*format && **format != "float" && **format != "base64") {
    return fail(ErrorCode::kInvalidInput, "\"encoding_format\" must be \"float\" or \"base64\".",
                "encoding_format");
  }
  wanted.base64 = *format && **format == "base64";
  const auto dim = static_cast<std::int64_t>(engine.embedding_model().dim());
  const auto dimensions = body.integer("dimensions", 1, dim);
  if (!dimensions) return std::unexpected(dimensions.error());
  wanted.dimensions = static_cast<std::size_t>(dimensions->value_or(0));
  const json::value* input = body.find("input");
  if (input == nullptr) return missing_field("input", "the text or texts to embed");
  return read_inputs(*input, max_inputs, wanted);
}

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

http::Task<Status> embed(Gateway& /*gateway*/, Call& call) {
  JsonBody body;
  if (Status parsed = body.parse(call.request().body); !parsed) co_return parsed;
  const route::Engine& engine = *call.deployment->engine;
  Wanted wanted;
  const auto max_inputs = static_cast<std::size_t>(call.deployment->config().server.max_inputs);
  if (Status read = read_wanted(body, engine, max_inputs, wanted); !read) co_return read;
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
  const std::size_t dim = shorten(*answer, wanted.dimensions);
  write_answer(*answer, dim, wanted.base64, engine.model_name(), call.response().body);
  co_return Status{};
}

}  // namespace waybill::api
