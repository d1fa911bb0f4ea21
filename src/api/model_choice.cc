#include "api/model_choice.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/await.h"
#include "api/decision_record.h"
#include "api/gateway.h"
#include "base/hash.h"
#include "base/suggest.h"

namespace waybill::api {
namespace {

constexpr std::size_t kMostWindows = 8;  // of a conversation

std::vector<std::string_view> known_names(const Deployment& deployment) {
  std::vector<std::string_view> names = {kAutoModel};
  for (const auto& model : deployment.catalog->models()) names.emplace_back(model->name);
  for (const route::RouteInfo& route : deployment.engine->routes()) names.emplace_back(route.name);
  return names;
}

std::unexpected<Error> unknown(const Deployment& deployment, std::string_view name) {
  const std::string_view shown = name.substr(0, 100);
  if (deployment.catalog->empty()) {
    return fail(ErrorCode::kNotFound,
                "No models are configured; add providers and models to waybill.yaml (docs/config.md).",
                "model");
  }
  const std::string likely = did_you_mean(shown, known_names(deployment));
  return fail(ErrorCode::kNotFound,
              fmt::format("There is no model \"{}\"{} GET /v1/models lists them.", shown,
                          likely.empty() ? "." : likely),
              "model");
}

// The model behind a route's name; empty: no such route.
std::string_view model_of_route(const Deployment& deployment, std::string_view name) {
  const std::span<const route::RouteInfo> routes = deployment.engine->routes();
  const auto found = std::ranges::find(routes, name, &route::RouteInfo::name);
  if (found != routes.end()) return found->model;
  if (name != deployment.config().default_route) return {};
  const std::string& model = deployment.config().default_model;
  return model.empty() ? name : std::string_view(model);
}

Result<ModelChoice> by_name(const Deployment& deployment, std::string_view name) {
  const upstream::Catalog::Found found = deployment.catalog->find(name);
  if (found.model == nullptr) return unknown(deployment, name);
  return ModelChoice{.model = found.model, .asked = std::string(found.asked), .route = {}, .tier = {}};
}

Status nothing_to_choose_by(const Deployment& deployment) {
  if (!deployment.engine->routes().empty() || !deployment.config().default_model.empty()) return {};
  return fail(ErrorCode::kNotFound,
              "There are no routes to choose a model by; name a model, or add routes or default_model to "
              "waybill.yaml.",
              "model");
}

// What keeps a conversation with its model: what the client says, else how the conversation begins.
std::uint64_t conversation_of(const Call& call, const upstream::ChatRequest& request) {
  const std::string_view session = call.request().header("x-waybill-session");
  std::uint64_t key = session.empty() ? request.conversation() : hash64(session);
  // Callers do not share conversations.
  if (key != 0 && call.caller != nullptr) key ^= hash64(call.caller->name);
  return key;
}

http::Task<Result<route::DecisionAnswer>> decide_by_last_message(Call& call,
                                                                 const upstream::ChatRequest& request) {
  route::DecisionService& service = call.deployment->engine->decisions();
  std::string prompt;
  request.append_last_user_text(prompt);
  const route::DecisionCall asked = {.prompt = prompt,
                                     .deadline = call.deadline,
                                     .executor = &call.exchange.loop(),
                                     .cancelled = &call.exchange.cancelled(),
                                     .allow_degraded = true};
  auto start = [&service, &asked](route::DecisionService::Completion&& done) {
    return service.decide(asked, std::move(done));
  };
  Result<route::DecisionAnswer> answer = co_await await_answer<route::DecisionAnswer>(call.exchange, start);
  co_return answer;
}

// Each of the user's last messages by itself, as the encoder would lose a short question in the average of a
// long conversation. The surest of those that a route claims decides; where none does, the last message.
http::Task<Result<route::DecisionAnswer>> decide_by_windows(Call& call,
                                                            const upstream::ChatRequest& request) {
  using Answers = std::vector<route::DecisionAnswer>;
  std::vector<upstream::Turn> turns;
  request.append_turns(turns);
  std::erase_if(turns, [](const upstream::Turn& turn) { return turn.role != "user"; });
  if (turns.size() < 2) {
    Result<route::DecisionAnswer> answer = co_await decide_by_last_message(call, request);
    co_return answer;
  }
  std::vector<std::string_view> windows;
  for (std::size_t i = turns.size() - std::min(turns.size(), kMostWindows); i < turns.size(); ++i)
    windows.emplace_back(turns[i].text);
  route::DecisionService& service = call.deployment->engine->decisions();
  const route::CallOptions options = {.deadline = call.deadline,
                                      .executor = &call.exchange.loop(),
                                      .cancelled = &call.exchange.cancelled(),
                                      .allow_degraded = true};
  auto start = [&](route::DecisionService::BatchCompletion&& done) {
    return service.decide_all(windows, options, std::move(done));
  };
  Result<Answers> answers = co_await await_answer<Answers>(call.exchange, start);
  if (!answers) co_return std::unexpected(std::move(answers.error()));
  const route::DecisionAnswer* surest = nullptr;
  for (const route::DecisionAnswer& each : *answers) {
    if (each.decision.tier == route::Tier::kDefault) continue;
    if (surest == nullptr || each.decision.score >= surest->decision.score) surest = &each;
  }
  co_return surest != nullptr ? *surest : answers->back();
}

}  // namespace

Status check_model(const Deployment& deployment, std::string_view name) {
  if (name == kAutoModel) return nothing_to_choose_by(deployment);
  if (deployment.catalog->find(name).model != nullptr) return {};
  const std::string_view model = model_of_route(deployment, name);
  if (!model.empty() && deployment.catalog->find(model).model != nullptr) return {};
  return unknown(deployment, model.empty() ? name : model);
}

http::Task<Result<ModelChoice>> choose_model(Gateway& gateway, Call& call,
                                             const upstream::ChatRequest& request) {
  const Deployment& deployment = *call.deployment;
  const std::string_view name = request.model();
  if (name != kAutoModel) {
    if (deployment.catalog->find(name).model == nullptr) {
      const std::string_view model = model_of_route(deployment, name);
      if (!model.empty()) {
        Result<ModelChoice> choice = by_name(deployment, model);
        if (choice) choice->route = name;
        co_return choice;
      }
    }
    co_return by_name(deployment, name);
  }
  if (Status some = nothing_to_choose_by(deployment); !some)
    co_return std::unexpected(std::move(some.error()));
  if (!deployment.engine->has_encoder()) {  // and so no routes
    Result<ModelChoice> choice = by_name(deployment, deployment.config().default_model);
    if (choice) choice->route = deployment.config().default_route;
    co_return choice;
  }
  const std::uint64_t conversation = conversation_of(call, request);
  const Duration sticky = deployment.config().gateway.sticky;
  const TimePoint now = std::chrono::steady_clock::now();
  if (conversation != 0 && sticky > Duration::zero()) {
    if (const auto kept = gateway.conversations().find(conversation, now)) {
      if (Result<ModelChoice> choice = by_name(deployment, kept->model)) {
        choice->route = kept->route;
        choice->tier = "sticky";
        call.waybill.decision(
            {.route = kept->route, .model = kept->model, .tier = "sticky", .reason = "conversation"});
        gateway.conversations().keep(conversation, *kept, now + sticky);
        co_return choice;
      }
    }
  }
  const bool windows = deployment.config().gateway.conversation == config::Conversation::kWindows;
  http::Task<Result<route::DecisionAnswer>> deciding =
      windows ? decide_by_windows(call, request) : decide_by_last_message(call, request);
  Result<route::DecisionAnswer> answer = co_await std::move(deciding);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  record_decision(call.waybill, answer->decision, answer->timing);
  Result<ModelChoice> choice = by_name(deployment, answer->decision.model);
  if (!choice) co_return choice;
  choice->route = answer->decision.route;
  choice->tier = to_string(answer->decision.tier);
  choice->score = answer->decision.score;
  if (conversation != 0 && sticky > Duration::zero()) {
    gateway.conversations().keep(conversation,
                                 {std::string(answer->decision.route), std::string(answer->decision.model)},
                                 now + sticky);
  }
  co_return choice;
}

}  // namespace waybill::api
