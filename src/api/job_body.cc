#include "api/job_body.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "api/embedding_request.h"
#include "api/json_body.h"
#include "api/model_choice.h"
#include "base/utf8.h"
#include "upstream/chat_request.h"
#include "upstream/json_scanner.h"

namespace waybill::api {
namespace {

using upstream::JsonScanner;
using upstream::JsonString;
using upstream::Operation;

constexpr std::size_t kShown = 100;

// The field at fault is part of another.
std::unexpected<Error> within(std::string_view outer, Error error) {
  error.field = error.field.empty() ? std::string(outer) : fmt::format("{}.{}", outer, error.field);
  return std::unexpected(std::move(error));
}

std::optional<Operation> operation_at(std::string_view path) noexcept {
  for (const Operation each : {Operation::kChat, Operation::kCompletions, Operation::kEmbeddings}) {
    if (path.starts_with("/v1") && path.substr(3) == upstream::path_of(each)) return each;
  }
  return std::nullopt;
}

Status check_local_embeddings(std::string_view body, const Deployment& deployment) {
  JsonBody json;
  EmbeddingRequest wanted;
  const route::Engine& engine = *deployment.engine;
  if (Status encoder = check_encoder(deployment); !encoder) return encoder;
  if (Status parsed = json.parse(body); !parsed) return parsed;
  return read_embedding_request(json, engine.model_name(), engine.embedding_model().dim(),
                                static_cast<std::size_t>(deployment.config().server.max_inputs), wanted);
}

// The members that matter, raw; empty: not there.
struct Members {
  std::optional<Operation> operation;  // of a body, by its fields
  std::string_view url, method, body;
};

Members read_members(JsonScanner& json) {
  Members members;
  bool messages = false, prompt = false, input = false;
  for (JsonString key; json.next_member(key);) {
    const std::string_view value = json.skip();
    messages = messages || key.is("messages");
    prompt = prompt || key.is("prompt");
    input = input || key.is("input");
    if (key.is("url")) members.url = value;
    if (key.is("method")) members.method = value;
    if (key.is("body")) members.body = value;
  }
  if (messages) {
    members.operation = Operation::kChat;
  } else if (prompt) {
    members.operation = Operation::kCompletions;
  } else if (input) {
    members.operation = Operation::kEmbeddings;
  }
  return members;
}

JobBody made(Operation operation, std::string_view body) {
  std::string endpoint = "/v1";
  endpoint += upstream::path_of(operation);
  return {.endpoint = std::move(endpoint), .body = body};
}

// {"method", "url", "body"}, as in the lines of OpenAI's batches.
Result<JobBody> read_line(const Members& members, const JobSource& source) {
  JsonString text;
  if (!members.method.empty() && (!JsonScanner(members.method).read(text) || !text.is("POST")))
    return fail(ErrorCode::kInvalidInput, "\"request.method\" must be \"POST\".", "request.method");
  std::string scratch;
  std::optional<Operation> operation;
  if (JsonScanner(members.url).read(text)) operation = operation_at(text.text(scratch));
  if (!operation) {
    return fail(ErrorCode::kInvalidInput,
                "\"request.url\" must be /v1/chat/completions, /v1/completions or /v1/embeddings.",
                "request.url");
  }
  if (members.body.empty()) return missing_field("request.body", "the body of the call");
  if (Status good = check_call(*operation, members.body, source); !good)
    return within("request.body", std::move(good.error()));
  return made(*operation, members.body);
}

}  // namespace

Status check_call(Operation operation, std::string_view body, const JobSource& source) {
  thread_local upstream::ChatRequest request;
  const Deployment& deployment = source.deployment;
  const bool embeds = operation == Operation::kEmbeddings;
  Status parsed = request.parse(operation, body);
  const bool local = embeds && (!parsed || request.model() == deployment.engine->model_name() ||
                                deployment.catalog->find(request.model()).model == nullptr);
  if (local) return check_local_embeddings(body, deployment);
  if (!parsed) return parsed;
  if (Status known = check_model(deployment, request.model()); !known) return known;
  if (source.caller == nullptr || !source.caller->account || source.caller->account->may_use(request.model()))
    return {};
  return fail(ErrorCode::kPermissionDenied,
              fmt::format("The key \"{}\" may not use the model \"{}\".", source.caller->name,
                          to_valid_utf8(request.model().substr(0, kShown))),
              "model");
}

Result<JobBody> read_job_body(std::string_view raw, const JobSource& source) {
  JsonScanner json(raw);
  if (!json.enter_object()) {
    return fail(ErrorCode::kInvalidInput, "\"request\" must be an object: the body of a call to a model.",
                "request");
  }
  const Members members = read_members(json);
  if (!members.operation && !members.url.empty()) return read_line(members, source);
  if (!members.operation) {
    return fail(ErrorCode::kInvalidInput,
                "\"request\" must have \"messages\" (a chat), \"prompt\" (a completion) or \"input\" "
                "(embeddings), or \"url\" and \"body\".",
                "request");
  }
  if (Status good = check_call(*members.operation, raw, source); !good)
    return within("request", std::move(good.error()));
  return made(*members.operation, raw);
}

}  // namespace waybill::api
