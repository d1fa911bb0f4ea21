#include "embed/decision_models.h"

#include <optional>
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
  std::optional<Precision> recheck;
  if (!options.precision && !options.isa) {
    const PrecisionPlan plan = decision_plan();
    options.precision = plan.first;
    recheck = plan.recheck;
  }
  auto first = load(options, out.notes);
  if (!first) return std::unexpected(std::move(first.error()));
  out.first = std::move(*first);
  if (!recheck) return out;
  options.precision = recheck;
  auto exact = load(options, out.notes);
  if (!exact) return std::unexpected(std::move(exact.error()));
  out.exact = std::move(*exact);
  return out;
}

}  // namespace waybill::embed
