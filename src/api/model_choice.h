// Which model a call asks for: by its own name, as a target, by a route's name, or by leaving it to the
// router.
#pragma once

#include <string>

#include "api/call.h"
#include "upstream/catalog.h"
#include "upstream/chat_request.h"

namespace waybill::api {

class Gateway;

inline constexpr std::string_view kAutoModel = "auto";

struct ModelChoice {
  const upstream::Model* model = nullptr;
  std::string asked;  // what its targets are asked for, where they have no name of their own for it
  // How it was chosen; empty where the call named it.
  std::string route, tier;
  float score = 0;
};

// Whether choose_model() would know this name, or "auto". kNotFound with the likely name.
[[nodiscard]] Status check_model(const Deployment& deployment, std::string_view name);

// kNotFound with the likely name, or what a decision fails with.
http::Task<Result<ModelChoice>> choose_model(Gateway& gateway, Call& call,
                                             const upstream::ChatRequest& request);

}  // namespace waybill::api
