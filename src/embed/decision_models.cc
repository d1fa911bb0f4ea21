#include "embed/decision_models.h"

#include <utility>

namespace waybill::embed {
namespace {

Result<std::unique_ptr<const Model>> load(const ModelOptions& options, std::vector<std::string>& notes) {
  LoadReport report;
  Result<Model> model = Model::load(options, &report);
  if (!model) return std::unexpected(std::move(model.error()));
  if (!report.cache_note.empty()) notes.push_back(std::move(report.cache_note));
  return std::make_unique<const Model>(std::move(*model));
}

}  // namespace

Result<DecisionModels> load_decision_models(ModelOptions options) {
  DecisionModels out;
  const bool named = options.precision || options.isa;
  const PrecisionPlan plan = decision_plan();
  if (!named) options.precision = plan.first;
  auto first = load(options, out.notes);
  if (!first) return std::unexpected(std::move(first.error()));
  out.first = std::move(*first);
  if (named) return out;
  options.precision = plan.recheck;
  auto exact = load(options, out.notes);
  if (!exact) return std::unexpected(std::move(exact.error()));
  out.exact = std::move(*exact);
  return out;
}

Result<EmbeddingModel> load_embedding_model(ModelOptions options, const DecisionModels& decisions,
                                            std::vector<std::string>& notes) {
  options.precision = options.precision.value_or(default_precision());
  for (const Model* const shared : {decisions.first.get(), decisions.exact.get()}) {
    if (shared != nullptr && shared->precision() == *options.precision)
      return EmbeddingModel{.model = shared, .own = nullptr};
  }
  auto own = load(options, notes);
  if (!own) return std::unexpected(std::move(own.error()));
  const Model* const model = own->get();
  return EmbeddingModel{.model = model, .own = std::move(*own)};
}

}  // namespace waybill::embed
