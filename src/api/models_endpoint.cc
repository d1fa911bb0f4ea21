// GET /v1/models and /v1/models/{id}: what may stand as `model` in a request; GET /v1/models?provider=NAME:
// what that provider has, asked for now.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "api/endpoint.h"
#include "api/gateway.h"
#include "api/model_choice.h"
#include "base/json_writer.h"
#include "base/suggest.h"
#include "upstream/inquiry.h"

namespace waybill::api {
namespace {

TimePoint now() noexcept { return std::chrono::steady_clock::now(); }

struct ListedModel {
  std::string_view name;
  std::string_view kind;  // "route", "model", "encoder"; "target": of a provider, by its own name
};

// Each name once: the encoder, the routes, the models behind them and those that are configured.
std::vector<ListedModel> listed_models(const route::Engine& engine, const upstream::Catalog& catalog) {
  std::vector<ListedModel> models;
  if (engine.has_encoder()) models.push_back({engine.model_name(), "encoder"});
  const auto add = [&models](std::string_view name, std::string_view kind) {
    if (std::ranges::find(models, name, &ListedModel::name) == models.end()) models.push_back({name, kind});
  };
  const bool decides = engine.has_encoder();
  if (!catalog.empty() && (decides || !engine.config().default_model.empty())) add(kAutoModel, "route");
  for (const auto& model : catalog.models()) add(model->name, "model");
  for (const route::RouteInfo& route : engine.routes()) add(route.name, "route");
  if (decides || !engine.config().default_model.empty()) add(engine.config().default_route, "route");
  for (const route::RouteInfo& route : engine.routes()) add(route.model, "model");
  return models;
}

void write_model(JsonWriter& json, const ListedModel& model) {
  json.begin_object().key("id").string(model.name).key("object").string("model").key("created").integer(0);
  json.key("owned_by").string("waybill").key("kind").string(model.kind).end_object();
}

http::Task<Status> list_models_of(Gateway& gateway, Call& call, std::string name) {
  const auto& providers = call.deployment->catalog->providers();
  const auto named = [](const auto& each) -> const std::string& { return each->config().name; };
  const auto found = std::ranges::find(providers, name, named);
  if (found == providers.end()) {
    std::vector<std::string_view> names;
    for (const auto& each : providers) names.emplace_back(each->config().name);
    const std::string likely = did_you_mean(name.substr(0, 100), names);
    co_return fail(
        ErrorCode::kNotFound,
        fmt::format("There is no provider \"{}\"{}", name.substr(0, 100), likely.empty() ? "." : likely),
        "provider");
  }
  Result<std::vector<std::string>> models = std::vector<std::string>();
  if (now() < call.deadline) {
    models = co_await upstream::model_names_of(**found, call.exchange.loop(), gateway.dispatcher().resolver(),
                                               call.deadline);
  }
  if (now() >= call.deadline) {
    co_return fail(ErrorCode::kDeadlineExceeded,
                   fmt::format("The deadline passed before {} had told its models.", name));
  }
  if (!models) co_return std::unexpected(std::move(models.error()));
  JsonWriter json(call.response().body);
  json.begin_object().key("object").string("list").key("data").begin_array();
  for (const std::string& each : *models) {
    const std::string id = fmt::format("{}/{}", name, each);
    write_model(json, {id, "target"});
  }
  json.end_array().end_object();
  co_return Status{};
}

}  // namespace

Status check_encoder(const Deployment& deployment) {
  if (deployment.engine->has_encoder()) return {};
  return fail(ErrorCode::kNotFound,
              "There is no encoder here, which has only models of providers: add routes to waybill.yaml, or "
              "the model that "
              "encoder.model names (docs/config.md).",
              "model");
}

std::string models_json(const route::Engine& engine, const upstream::Catalog& catalog) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("object").string("list").key("data").begin_array();
  for (const ListedModel& model : listed_models(engine, catalog)) write_model(json, model);
  json.end_array().end_object();
  return text;
}

http::Task<Status> list_models(Gateway& gateway, Call& call) {
  if (call.request().path == "/v1/models") {
    std::string provider;
    if (http::query_parameter(call.request().query, "provider", provider)) {
      Status listed = co_await list_models_of(gateway, call, std::move(provider));
      co_return listed;
    }
    call.response().body = call.deployment->models_json;
    co_return Status{};
  }
  const std::string wanted = path_argument(call);
  for (const ListedModel& model : listed_models(*call.deployment->engine, *call.deployment->catalog)) {
    if (model.name != wanted) continue;
    JsonWriter json(call.response().body);
    write_model(json, model);
    co_return Status{};
  }
  co_return fail(ErrorCode::kNotFound,
                 fmt::format("There is no model \"{}\"; GET /v1/models lists them.", wanted.substr(0, 100)),
                 "model");
}

}  // namespace waybill::api
