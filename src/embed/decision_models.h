// The models that serve decisions, as this CPU does it best.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "embed/model.h"

namespace waybill::embed {

// At addresses of their own, since routers refer to them.
struct DecisionModels {
  std::unique_ptr<const Model> first;  // encodes every prompt
  std::unique_ptr<const Model> exact;  // encodes the close calls once more; null when `first` is exact enough
  std::vector<std::string> notes;      // what loading had to say about cache files
};

// A precision or instruction set that is given is the only one; else decision_plan() says.
[[nodiscard]] Result<DecisionModels> load_decision_models(ModelOptions options);

}  // namespace waybill::embed
