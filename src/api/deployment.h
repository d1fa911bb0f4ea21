// One configuration in force: what it decides with, who may call, and the answers that never change under it.
#pragma once

#include <memory>
#include <string>

#include "api/keys.h"
#include "base/result.h"
#include "config/config.h"
#include "route/engine.h"
#include "upstream/catalog.h"

namespace waybill::api {

// Immutable. Shared: a reload puts another in its place while calls that began with this one still use it.
struct Deployment {
  std::shared_ptr<const route::Engine> engine;       // of the gateway's EngineSlot, which also ends it
  std::shared_ptr<const upstream::Catalog> catalog;  // empty where no models are configured
  Keyring keys;
  std::string models_json;  // GET /v1/models

  [[nodiscard]] const config::Config& config() const noexcept { return engine->config(); }
};

// kNotFound where no encoder is loaded, so that nothing can be decided or embedded here.
[[nodiscard]] Status check_encoder(const Deployment& deployment);

// What GET /v1/models says.
[[nodiscard]] std::string models_json(const route::Engine& engine, const upstream::Catalog& catalog);

}  // namespace waybill::api
