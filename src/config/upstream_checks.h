// What can only be checked of providers, models and prices once all of the configuration has been read.
#pragma once

#include "config/check_context.h"

namespace waybill::config {

// Calls are made to models, and not only decided.
[[nodiscard]] inline bool serves_models(const Config& config) {
  return !config.providers.empty() || !config.models.empty();
}

// Models are served by name only: nothing is ever decided, and so nothing needs a default model.
[[nodiscard]] inline bool is_without_routing(const Config& config) {
  return serves_models(config) && config.routes.empty() && config.rules.empty() &&
         config.default_route == Config{}.default_route;
}

void check_providers(const CheckContext& context);  // upstream_checks.cc
void check_models(const CheckContext& context);     // model_checks.cc: models, routes, callers, prices

}  // namespace waybill::config
