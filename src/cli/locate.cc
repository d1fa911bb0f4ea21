#include "cli/locate.h"

#include <array>
#include <cstdlib>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "cli/command.h"

namespace waybill::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDefaultConfig = "waybill.yaml";
constexpr std::string_view kDefaultModel = "models/all-MiniLM-L6-v2";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::optional<fs::path> from_environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return fs::path(value);
}

fs::path program_folder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : program.parent_path();
}

// The folders above the program: the source tree when it stands in build/release, the prefix when in bin.
std::vector<fs::path> folders_above_program() {
  const fs::path folder = program_folder();
  if (folder.empty()) return {};
  return {folder, folder.parent_path(), folder.parent_path().parent_path()};
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

// The default model, wherever it may stand.
std::optional<fs::path> default_model() {
  if (is_there(kDefaultModel)) return fs::path(kDefaultModel);
  for (const fs::path& folder : folders_above_program()) {
    for (const fs::path& path : {folder / kDefaultModel, folder / "share/waybill" / kDefaultModel}) {
      if (is_there(path)) return path;
    }
  }
  return std::nullopt;
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
  } else if (!is_there(choice.folder)) {
    std::optional<fs::path> other = from_environment("WAYBILL_MODEL");
    if (!other) other = default_model();
    if (other && (from_environment("WAYBILL_MODEL") || other->filename() == choice.folder.filename())) {
      print_note(fmt::format("{} is not there; using {}", choice.folder.string(), other->string()));
      choice.folder = *other;
    }
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
  if (!found) found = default_model();
  if (!found) {
    return fail(
        ErrorCode::kNotFound,
        fmt::format(
            "there is no model in {}; `waybill model fetch` brings it, --model or WAYBILL_MODEL names "
            "another folder",
            kDefaultModel));
  }
  choice.folder = *found;
  return choice;
}

Result<fs::path> find_shared_file(const std::string& name) {
  for (const fs::path& folder : folders_above_program()) {
    for (const fs::path& path : {folder / "share/waybill" / name, folder / "tools" / name}) {
      if (is_there(path)) return path;
    }
  }
  return fail(ErrorCode::kNotFound,
              fmt::format("{} is not installed with this program; it belongs in ../share/waybill", name));
}

namespace {

Result<embed::ModelOptions> model_options(const ModelChoice& choice) {
  embed::ModelOptions options = {
      .folder = choice.folder, .precision = {}, .isa = {}, .use_cache_file = choice.use_cache_file};
  if (choice.precision == "auto") return options;
  options.precision = embed::parse_precision(choice.precision);
  if (options.precision) return options;
  return fail(ErrorCode::kInvalidInput, fmt::format("there is no precision \"{}\"", choice.precision));
}

// A folder that is not there is the likeliest reason, and has a remedy.
Error with_remedy(Error error, const ModelChoice& choice) {
  if (is_there(choice.folder)) return error;
  return {ErrorCode::kNotFound,
          fmt::format("there is no model folder {}; `waybill model fetch` brings all-MiniLM-L6-v2",
                      choice.folder.string()),
          {}};
}

}  // namespace

Result<embed::Model> load_model(const ModelChoice& choice, embed::LoadReport* report) {
  const Result<embed::ModelOptions> options = model_options(choice);
  if (!options) return std::unexpected(options.error());
  embed::LoadReport own;
  embed::LoadReport& told = report != nullptr ? *report : own;
  Result<embed::Model> model = embed::Model::load(*options, &told);
  if (!model) return std::unexpected(with_remedy(std::move(model.error()), choice));
  if (!told.cache_note.empty()) print_note(told.cache_note);
  return model;
}

Result<embed::DecisionModels> load_decision_models(const ModelChoice& choice) {
  const Result<embed::ModelOptions> options = model_options(choice);
  if (!options) return std::unexpected(options.error());
  Result<embed::DecisionModels> models = embed::load_decision_models(*options);
  if (!models) return std::unexpected(with_remedy(std::move(models.error()), choice));
  for (const std::string& note : models->notes) print_note(note);
  return models;
}

}  // namespace waybill::cli
