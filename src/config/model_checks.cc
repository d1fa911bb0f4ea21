// Names: what a model, a target, a route and a caller may be called, and whether what they name is there.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "base/suggest.h"
#include "config/reader.h"
#include "config/upstream_checks.h"

namespace waybill::config {
namespace {

constexpr std::string_view kAuto = "auto";  // asks for a decision

class ModelChecker : CheckContext {
 public:
  explicit ModelChecker(const CheckContext& context)
      : CheckContext(context), serves_(serves_models(config_)) {
    for (const Provider& provider : config_.providers) provider_names_.push_back(provider.name);
    for (std::size_t i = 0; i < config_.models.size(); ++i) {
      model_names_.push_back(config_.models[i].name);
      models_.emplace(config_.models[i].name, i);
    }
    providers_.insert(provider_names_.begin(), provider_names_.end());
  }

  void check_all() {
    for (std::size_t i = 0; i < config_.models.size(); ++i) check_model(i);
    check_circles();
    if (serves_) {
      check_routes();
      check_default();
    }
    for (std::size_t i = 0; i < config_.keys.size(); ++i) check_caller(i);
    check_prices();
  }

 private:
  void wrong(const std::string& key, const Position& otherwise, std::string message) {
    error(line_of(key, otherwise), key, std::move(message));
  }

  // "auto" and names with a slash mean something else wherever a model may be named.
  void check_taken(std::string_view what, const std::string& name, const std::string& key, const Position& at,
                   std::string_view slash_fix) {
    if (name == kAuto) {
      wrong(key, at, fmt::format("the {} \"auto\" has the name that asks for a decision; rename it", what));
    } else if (name.find('/') != std::string::npos) {
      wrong(key, at,
            fmt::format("the {} \"{}\" has a \"/\" in its name, which is taken for provider/model; {}", what,
                        shown(name), slash_fix));
    }
  }

  void check_model(std::size_t i) {
    const Model& model = config_.models[i];
    const std::string path = fmt::format("models[{}]", i);
    if (!model.name.empty()) {
      const std::string_view last = std::string_view(model.name).substr(model.name.rfind('/') + 1);
      check_taken(
          "model", model.name, path + ".name", model.position,
          fmt::format("name it \"{}\" and give its target model: {}", shown(last), shown(model.name)));
      const Model& first = config_.models[models_.at(model.name)];
      if (&first != &model) {
        wrong(path + ".name", model.position,
              fmt::format(
                  "the model \"{}\" is there twice (first at {}); rename one, or move its targets to the "
                  "other",
                  model.name, first.position.text()));
      }
    }
    if (model.targets.empty() && !is_wrong(path + ".targets")) {
      wrong(path + ".targets", model.position,
            fmt::format("the model \"{}\" has no targets; add targets: [{{provider: NAME}}]", model.name));
    }
    check_targets(model, path);
    check_fallback(model, path);
  }

  void check_targets(const Model& model, const std::string& path) {
    std::unordered_map<std::string, const Target*> first;
    for (std::size_t i = 0; i < model.targets.size(); ++i) {
      const Target& target = model.targets[i];
      const std::string key = fmt::format("{}.targets[{}]", path, i);
      if (target.provider.empty()) continue;  // told when it was read
      if (!providers_.contains(target.provider)) {
        const std::string hint = did_you_mean(target.provider, provider_names_);
        wrong(key + ".provider", target.position,
              fmt::format("the model \"{}\" has a target at the provider \"{}\", which is not there{}",
                          model.name, target.provider,
                          hint.empty() ? "; add it to providers, or correct the name" : hint));
      }
      const std::string& name = target.model.empty() ? model.name : target.model;
      const auto [before, added] = first.emplace(target.provider + '/' + name, &target);
      if (added) continue;
      wrong(key, target.position,
            fmt::format(
                "the model \"{}\" has the target {}/{} twice (first at {}); remove one, or give one of them "
                "more weight",
                model.name, target.provider, name, before->second->position.text()));
    }
  }

  void check_fallback(const Model& model, const std::string& path) {
    const std::string key = path + ".fallback";
    std::unordered_set<std::string_view> seen;
    for (const std::string& name : model.fallback) {
      if (!seen.insert(name).second) {
        wrong(key, model.position,
              fmt::format("the model \"{}\" falls back to \"{}\" twice; remove one", model.name, name));
      } else if (name == model.name) {
        wrong(key, model.position,
              fmt::format("the model \"{}\" falls back to itself; remove it", model.name));
      } else if (!models_.contains(name)) {
        const std::string hint = did_you_mean(name, model_names_);
        wrong(key, model.position,
              fmt::format("the model \"{}\" falls back to \"{}\", which is none of models{}", model.name,
                          shown(name), hint.empty() ? "; add it there, or correct the name" : hint));
      }
    }
  }

  // A walk down each chain of fallbacks, on a stack of its own: a file may hold longer ones than the
  // thread's.
  void check_circles() {
    enum class Mark : std::uint8_t { kNew, kOpen, kDone };
    std::vector<Mark> marks(config_.models.size(), Mark::kNew);
    struct Step {
      std::size_t model, next;
    };
    for (std::size_t start = 0; start < marks.size(); ++start) {
      if (marks[start] != Mark::kNew) continue;
      std::vector<Step> open = {{start, 0}};
      marks[start] = Mark::kOpen;
      bool told = false;  // one circle of those that hang together is enough to begin with
      while (!open.empty()) {
        Step& step = open.back();
        const std::vector<std::string>& fallback = config_.models[step.model].fallback;
        if (step.next == fallback.size()) {
          marks[step.model] = Mark::kDone;
          open.pop_back();
          continue;
        }
        const auto found = models_.find(fallback[step.next++]);
        if (found == models_.end() || found->second == step.model) continue;  // told above
        if (marks[found->second] == Mark::kNew) {
          marks[found->second] = Mark::kOpen;
          open.push_back({found->second, 0});
        } else if (marks[found->second] == Mark::kOpen && !told) {
          told = true;
          const auto first = std::ranges::find(open, found->second, &Step::model);
          std::string names;
          for (auto each = first; each != open.end() && names.size() < 100; ++each)
            names += shown(config_.models[each->model].name) + ", ";
          tell_circle(found->second, names);
        }
      }
    }
  }

  void tell_circle(std::size_t i, const std::string& names) {
    const Model& model = config_.models[i];
    wrong(fmt::format("models[{}].fallback", i), model.position,
          fmt::format("the fallback of \"{0}\" leads back to it ({1}{0}); take it out of one of them",
                      shown(model.name), names));
  }

  // Empty when calls can be made to `name`; else what to do.
  [[nodiscard]] std::string missing(std::string_view name) const {
    if (models_.contains(name)) return {};
    const std::size_t slash = name.find('/');
    if (slash != std::string_view::npos && slash + 1 < name.size()) {
      const std::string_view provider = name.substr(0, slash);
      if (providers_.contains(provider)) return {};
      const std::string hint = did_you_mean(provider, provider_names_);
      if (!hint.empty()) return fmt::format(", and no provider is called \"{}\"{}", shown(provider), hint);
    }
    const std::string hint = did_you_mean(name, model_names_);
    return hint.empty() ? "; add it to models, or write provider/model" : hint;
  }

  void check_routes() {
    for (std::size_t i = 0; i < config_.routes.size(); ++i) {
      const Route& route = config_.routes[i];
      if (route.name.empty()) continue;
      const std::string path = fmt::format("routes[{}]", i);
      check_taken("route", route.name, path + ".name", route.position, "rename it");
      const std::string& model = route.model.empty() ? route.name : route.model;
      check_served("route", route.name, model, path + ".model", route.position, !route.model.empty());
    }
  }

  // The default route's own name and model, where it is not one of the routes.
  void check_default() {
    const auto route = std::ranges::find(config_.routes, config_.default_route, &Route::name);
    const bool listed = route != config_.routes.end();
    if (is_wrong("default_model") || is_wrong("default_route")) return;
    if (!listed)
      check_taken("default route", config_.default_route, "default_route", line_of("default_route"),
                  "rename it");
    const bool given = !config_.default_model.empty();
    if (is_without_routing(config_) && !given) return;
    if (listed && !given) return;  // its model has been checked
    check_served("default route", config_.default_route,
                 given ? config_.default_model : config_.default_route, "default_model",
                 line_of("default_route"), given);
  }

  void check_served(std::string_view what, const std::string& name, const std::string& model,
                    const std::string& key, const Position& at, bool given) {
    if (is_wrong(key)) return;
    const std::string problem = missing(model);
    if (!problem.empty()) {
      wrong(key, at,
            given
                ? fmt::format("the {} \"{}\" is served by \"{}\", which is none of models{}", what,
                              shown(name), shown(model), problem)
                : fmt::format("the {} \"{}\" has no model, and none of models is called as it is; add {}: {}",
                              what, shown(name), what == "route" ? "model" : "default_model",
                              model_names_.empty() ? "PROVIDER/MODEL" : shown(model_names_.front())));
    } else if (model != name && models_.contains(name)) {
      wrong(key, at,
            fmt::format(
                "\"{0}\" is both a {1}, served by \"{2}\", and one of models, so that nobody knows which of "
                "them is asked for; rename one",
                shown(name), what, shown(model)));
    }
  }

  void check_caller(std::size_t i) {
    const ApiKey& caller = config_.keys[i];
    const CallerLimits& limits = caller.limits;
    const std::string key = fmt::format("keys[{}].limits", i);
    for (const std::string& name : limits.models) {
      if (name == kAuto || name == config_.default_route || is_route(name)) continue;
      const std::string problem = missing(name);
      if (problem.empty()) continue;
      std::vector<std::string_view> names = model_names_;
      for (const Route& route : config_.routes) names.push_back(route.name);
      const std::string hint = did_you_mean(name, names);
      wrong(key + ".models", caller.position,
            fmt::format("the key \"{}\" may ask for \"{}\", which is neither a model nor a route{}",
                        caller.name, shown(name), hint.empty() ? problem : hint));
    }
    if (limits.budget_per_month > 0 && limits.budget_per_day > limits.budget_per_month) {
      warn(line_of(key + ".budget_per_day", caller.position), key + ".budget_per_day",
           fmt::format("{0}.budget_per_day is more than {0}.budget_per_month", key));
    }
  }

  [[nodiscard]] bool is_route(std::string_view name) const {
    return std::ranges::find(config_.routes, name, &Route::name) != config_.routes.end();
  }

  void check_prices() {
    std::unordered_map<std::string_view, const Price*> first;
    for (std::size_t i = 0; i < config_.prices.size(); ++i) {
      const Price& price = config_.prices[i];
      if (price.model.empty()) continue;
      const auto [before, added] = first.emplace(price.model, &price);
      if (added) continue;
      wrong(fmt::format("prices[{}].model", i), price.position,
            fmt::format("the price of \"{}\" is there twice (first at {}); remove one", price.model,
                        before->second->position.text()));
    }
  }

  bool serves_;
  std::vector<std::string_view> provider_names_, model_names_;
  std::unordered_set<std::string_view> providers_;
  std::unordered_map<std::string_view, std::size_t> models_;  // by name, the first of each
};

}  // namespace

void check_models(const CheckContext& context) { ModelChecker(context).check_all(); }

}  // namespace waybill::config
