#include "upstream/catalog.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace waybill::upstream {
namespace {

// Where in a file a provider stands does not make it another.
config::Provider without_positions(config::Provider provider) {
  provider.position = {};
  for (config::SecretSource& key : provider.keys) key.position = {};
  return provider;
}

}  // namespace

Result<std::shared_ptr<const Catalog>> Catalog::make(const config::Config& config, const Catalog* previous) {
  std::shared_ptr<Catalog> made(new Catalog(config));
  if (Status added = made->add_providers(config, previous); !added) return std::unexpected(added.error());
  made->add_models(config, previous);
  return made;
}

Status Catalog::add_providers(const config::Config& config, const Catalog* previous) {
  for (const config::Provider& each : config.providers) {
    const config::Provider wanted = without_positions(each);
    std::shared_ptr<Provider> provider;
    if (previous != nullptr) {
      const auto same = std::ranges::find_if(
          previous->providers_, [&wanted](const auto& before) { return before->config() == wanted; });
      if (same != previous->providers_.end()) provider = *same;
    }
    if (!provider) {
      Result<std::shared_ptr<Provider>> made = Provider::make(wanted);
      if (!made) return std::unexpected(std::move(made.error()));
      provider = std::move(*made);
    }
    providers_.push_back(provider);
    auto any = std::make_unique<Model>();
    any->name = each.name + "/";
    any->pool.push_back({.target = target(provider, {}, previous)});
    by_provider_.emplace(each.name, std::move(any));
  }
  return {};
}

std::shared_ptr<Target> Catalog::target(const std::shared_ptr<Provider>& provider, const std::string& model,
                                        const Catalog* previous) {
  std::string name = provider->config().name + "/" + model;
  if (const auto known = targets_.find(name); known != targets_.end()) return known->second;
  std::shared_ptr<Target> made;
  if (previous != nullptr) {
    const auto before = previous->targets_.find(name);
    if (before != previous->targets_.end() && before->second->provider == provider) made = before->second;
  }
  if (!made) made = std::make_shared<Target>(provider, model, name, provider->config().health);
  targets_.emplace(std::move(name), made);
  return made;
}

void Catalog::add_models(const config::Config& config, const Catalog* previous) {
  for (const config::Model& each : config.models) {
    auto model = std::make_unique<Model>();
    model->name = each.name;
    model->config = each;
    for (const config::Target& wanted : each.targets) {
      const auto provider = std::ranges::find_if(
          providers_, [&wanted](const auto& known) { return known->config().name == wanted.provider; });
      if (provider == providers_.end()) continue;  // a checked configuration has none such
      model->pool.push_back(
          {.target = target(*provider, wanted.model.empty() ? each.name : wanted.model, previous),
           .priority = wanted.priority,
           .weight = wanted.weight});
    }
    by_name_.emplace(each.name, model.get());
    models_.push_back(std::move(model));
  }
  for (const auto& model : models_) {
    for (const std::string& name : model->config.fallback) {
      if (const auto found = by_name_.find(name); found != by_name_.end())
        model->fallback.push_back(found->second);
    }
  }
}

Catalog::Found Catalog::find(std::string_view name) const {
  if (const auto model = by_name_.find(name); model != by_name_.end()) return {model->second, name};
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos || slash + 1 == name.size()) return {};
  const auto provider = by_provider_.find(name.substr(0, slash));
  if (provider == by_provider_.end()) return {};
  return {provider->second.get(), name.substr(slash + 1)};
}

std::uint64_t Catalog::cost_nano_usd(const Target& target, std::string_view model, const Usage& usage) const {
  const config::Price* price = prices_.find(target.model.empty() ? model : std::string_view(target.model));
  if (price == nullptr) price = prices_.find(model);
  if (price == nullptr) return 0;
  return static_cast<std::uint64_t>(
      std::llround(config::cost(*price, usage.prompt, usage.cached_prompt, usage.completion) * 1e9));
}

}  // namespace waybill::upstream
