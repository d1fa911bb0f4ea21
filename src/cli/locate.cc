#include "cli/locate.h"

#include <array>
#include <cstdlib>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "cli/command.h"
#include "route/model_location.h"

namespace waybill::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDefaultConfig = "waybill.yaml";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::optional<fs::path> from_environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return fs::path(value);
}

}  // namespace

Result<fs::path> find_config(const std::string& option) {
  if (!option.empty()) {
    if (!is_there(option))
      return fail(ErrorCode::kNotFound, fmt::format("there is no configuration file {}", option));
    return fs::path(option);
  }
  if (is_there(kDefaultConfig)) return fs::path(kDefaultConfig);
  if (const auto path = from_environment("WAYBILL_CONFIG")) {
    if (is_there(*path)) return *path;
    return fail(ErrorCode::kNotFound,
                fmt::format("WAYBILL_CONFIG names {}, which is not there", path->string()));
  }
  return fail(ErrorCode::kNotFound,
              "there is no waybill.yaml in this folder; name a configuration file with --config or in "
              "WAYBILL_CONFIG");
}

namespace {

Result<config::Config> read_config(const std::string& option) {
  const Result<fs::path> path = find_config(option);
  if (!path) return std::unexpected(path.error());
  auto config = config::load(*path);
  if (config) return std::move(*config);
  std::string text = config.error().text();
  while (text.ends_with('\n')) text.pop_back();
  return fail(ErrorCode::kInvalidInput, std::move(text));
}

}  // namespace

Result<config::Config> load_config(const std::string& option) {
  Result<config::Config> config = read_config(option);
  if (config) {
    for (const config::Diagnostic& warning : config->warnings) print_note(warning.text());
  }
  return config;
}

ModelChoice choose_model(const config::Config& config, const std::string& model_option,
                         const std::string& precision) {
  ModelChoice choice = {.folder = config.encoder.model,
                        .precision = precision.empty() ? config.encoder.precision : precision,
                        .use_cache_file = config.encoder.cache_file};
  if (!model_option.empty()) {
    choice.folder = model_option;
  } else {
    route::ModelLocation found = route::locate_model(config);
    if (!found.note.empty()) print_note(found.note);
    choice.folder = std::move(found.folder);
  }
  return choice;
}

Result<ModelChoice> choose_model(const std::string& model_option, const std::string& config_option,
                                 const std::string& precision) {
  if (model_option.empty() || !config_option.empty()) {
    if (find_config(config_option)) {
      const Result<config::Config> config = read_config(config_option);
      if (!config) return std::unexpected(config.error());
      return choose_model(*config, model_option, precision);
    }
    if (!config_option.empty()) return std::unexpected(find_config(config_option).error());
  }
  ModelChoice choice = {.folder = model_option, .precision = precision.empty() ? "auto" : precision};
  if (!model_option.empty()) return choice;
  std::optional<fs::path> found = from_environment("WAYBILL_MODEL");
  if (!found) found = route::default_model();
  if (!found) {
    return fail(
        ErrorCode::kNotFound,
        fmt::format(
            "there is no model in {}; `waybill model fetch` brings it, --model or WAYBILL_MODEL names "
            "another folder",
            route::kDefaultModel));
  }
  choice.folder = *found;
  return choice;
}

Result<fs::path> find_shared_file(const std::string& name) {
  for (const fs::path& folder : route::folders_above_program()) {
    for (const fs::path& path : {folder / "share/waybill" / name, folder / "tools" / name}) {
      if (is_there(path)) return path;
    }
  }
  return fail(ErrorCode::kNotFound,
              fmt::format("{} is not installed with this program; it belongs in ../share/waybill", name));
}

namespace {

Result<embed::ModelOptions> model_options(const ModelChoice& choice) {
  return route::model_options(choice.folder, choice.precision, choice.use_cache_file);
}

}  // namespace

Result<embed::Model> load_model(const ModelChoice& choice, embed::LoadReport* report) {
  const Result<embed::ModelOptions> options = model_options(choice);
  if (!options) return std::unexpected(options.error());
  embed::LoadReport own;
  embed::LoadReport& told = report != nullptr ? *report : own;
  Result<embed::Model> model = embed::Model::load(*options, &told);
  if (!model) return std::unexpected(route::with_remedy(std::move(model.error()), choice.folder));
  if (!told.cache_note.empty()) print_note(told.cache_note);
  return model;
}

Result<embed::DecisionModels> load_decision_models(const ModelChoice& choice) {
  const Result<embed::ModelOptions> options = model_options(choice);
  if (!options) return std::unexpected(options.error());
  Result<embed::DecisionModels> models = embed::load_decision_models(*options);
  if (!models) return std::unexpected(route::with_remedy(std::move(models.error()), choice.folder));
  for (const std::string& note : models->notes) print_note(note);
  return models;
}

}  // namespace waybill::cli
