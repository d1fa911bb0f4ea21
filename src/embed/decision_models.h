// The models that serve decisions and embeddings, as this CPU does it best.
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
  std::unique_ptr<const Model> exact;  // encodes the close calls once more; null: a precision was named
  std::vector<std::string> notes;      // what loading had to say about cache files
};

// A precision or instruction set that is given is the only one; else decision_plan() says.
[[nodiscard]] Result<DecisionModels> load_decision_models(ModelOptions options);

// The model for those who want the embedding itself.
struct EmbeddingModel {
  const Model* model = nullptr;
  std::unique_ptr<const Model> own;  // null when it is one of the decision models
};

// In the precision that is given, else default_precision(). `options` are those that `decisions` were loaded
// with; `notes` gets what loading had to say about the cache file.
[[nodiscard]] Result<EmbeddingModel> load_embedding_model(ModelOptions options,
                                                          const DecisionModels& decisions,
                                                          std::vector<std::string>& notes);

}  // namespace waybill::embed
