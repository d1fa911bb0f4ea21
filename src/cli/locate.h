// Where the configuration, the model and the program's own files are.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "embed/decision_models.h"
#include "embed/model.h"

namespace waybill::cli {

// --config, else waybill.yaml in the current folder, else $WAYBILL_CONFIG. kNotFound says all three.
[[nodiscard]] Result<std::filesystem::path> find_config(const std::string& option);

// The same, loaded. All errors of the file, one a line, and its warnings as notes on stderr.
[[nodiscard]] Result<config::Config> load_config(const std::string& option);

// Which model, and how it computes.
struct ModelChoice {
  std::filesystem::path folder;
  std::string precision = "auto";
  bool use_cache_file = true;
};

// --model, else the encoder of the configuration that find_config finds, else $WAYBILL_MODEL, else
// models/all-MiniLM-L6-v2 in the current folder or beside the program. `precision` may be empty: what the
// configuration says, or "auto".
[[nodiscard]] Result<ModelChoice> choose_model(const std::string& model_option,
                                               const std::string& config_option,
                                               const std::string& precision);
// For a configuration that is loaded already. Where its model folder is missing another may step in
// (route/model_location.h), and a note says so.
[[nodiscard]] ModelChoice choose_model(const config::Config& config, const std::string& model_option,
                                       const std::string& precision);

// Loads the model; what was odd about it goes to stderr as a note.
[[nodiscard]] Result<embed::Model> load_model(const ModelChoice& choice, embed::LoadReport* report = nullptr);

// The models that decide: the precision chosen, or for "auto" what embed::decision_plan() says.
[[nodiscard]] Result<embed::DecisionModels> load_decision_models(const ModelChoice& choice);

// A file that is installed with the program: in ../share/waybill, or in the source tree it was built in.
[[nodiscard]] Result<std::filesystem::path> find_shared_file(const std::string& name);

}  // namespace waybill::cli
