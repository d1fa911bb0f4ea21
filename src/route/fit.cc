#include "route/fit.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "base/file.h"

namespace waybill::route {

std::filesystem::path fit_file(const config::Config& config) { return config.cache_folder / "fit.tsv"; }

Result<Dataset> load_fit(const config::Config& config) {
  const std::filesystem::path path = fit_file(config);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return Dataset{.name = path.string(), .examples = {}};
  return load_dataset(path, DatasetFormat::kTsv);
}

Status save_fit(const config::Config& config, const Dataset& examples) {
  if (examples.examples.empty()) {
    std::error_code error;
    std::filesystem::remove(fit_file(config), error);
    if (!error) return {};
    return fail(ErrorCode::kIo,
                fmt::format("cannot remove {}: {}", fit_file(config).string(), error.message()));
  }
  std::string lines;
  for (const Example& example : examples.examples) {
    std::string text = example.text;
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
    lines.append(example.label).append(1, '\t').append(text).append(1, '\n');
  }
  return write_file_atomically(fit_file(config), lines);
}

}  // namespace waybill::route
