#include "route/model_location.h"

#include <cstdlib>
#include <system_error>

#include <fmt/format.h>

namespace waybill::route {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::optional<fs::path> model_of_environment() {
  const char* value = std::getenv("WAYBILL_MODEL");
  if (value == nullptr || *value == '\0') return std::nullopt;
  return fs::path(value);
}

}  // namespace

std::vector<fs::path> folders_above_program() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return {};
  const fs::path folder = program.parent_path();
  return {folder, folder.parent_path(), folder.parent_path().parent_path()};
}

std::optional<fs::path> default_model() {
  if (is_there(kDefaultModel)) return fs::path(kDefaultModel);
  for (const fs::path& folder : folders_above_program()) {
    for (const fs::path& path : {folder / kDefaultModel, folder / "share/waybill" / kDefaultModel}) {
      if (is_there(path)) return path;
    }
  }
  return std::nullopt;
}

ModelLocation locate_model(const config::Config& config) {
  const fs::path& wanted = config.encoder.model;
  if (is_there(wanted)) return {.folder = wanted, .note = {}};
  std::optional<fs::path> other = model_of_environment();
  if (!other) {
    other = default_model();
    if (other && other->filename() != wanted.filename()) other.reset();
  }
  if (!other) return {.folder = wanted, .note = {}};
  return {.folder = *other,
          .note = fmt::format("{} is not there; using {}", wanted.string(), other->string())};
}

Result<embed::ModelOptions> model_options(const fs::path& folder, std::string_view precision,
                                          bool use_cache_file) {
  embed::ModelOptions options = {
      .folder = folder, .precision = {}, .isa = {}, .use_cache_file = use_cache_file};
  if (precision == "auto") return options;
  options.precision = embed::parse_precision(precision);
  if (options.precision) return options;
  return fail(ErrorCode::kInvalidInput, fmt::format("there is no precision \"{}\"", precision));
}

Error with_remedy(Error error, const fs::path& folder) {
  if (is_there(folder)) return error;
  return {.code = ErrorCode::kNotFound,
          .message = fmt::format("there is no model folder {}; `waybill model fetch` brings all-MiniLM-L6-v2",
                                 folder.string()),
          .field = {}};
}

}  // namespace waybill::route
