// Many prompts at once.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "embed/model.h"
#include "route/decision.h"
#include "route/router.h"

namespace waybill::route {

// The decisions that Router::decide() would make, in order: what the cheap tiers cannot tell goes through the
// encoder in packed batches on `threads` threads (0: one per core). `model` is the one the router was loaded
// with. Calls from several threads are safe, each with a scratch of its own.
[[nodiscard]] std::vector<Decision> decide_batch(const Router& router, const embed::Model& model,
                                                 std::span<const std::string> prompts, unsigned threads,
                                                 DecideScratch& scratch, const Progress& progress = {});

}  // namespace waybill::route
