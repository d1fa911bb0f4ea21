// Where the model of a configuration is.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "embed/model.h"

namespace waybill::route {

inline constexpr std::string_view kDefaultModel = "models/all-MiniLM-L6-v2";

struct ModelLocation {
  std::filesystem::path folder;
  std::string note;  // "models/x is not there; using ..."; else empty
};

// encoder.model of the configuration. Where that is missing, $WAYBILL_MODEL, or a model of the same name in
// the current folder or beside the program steps in.
[[nodiscard]] ModelLocation locate_model(const config::Config& config);

// The default model in the current folder or beside the program.
[[nodiscard]] std::optional<std::filesystem::path> default_model();

// The folders above the program: the source tree when it stands in build/release, the prefix when in bin.
[[nodiscard]] std::vector<std::filesystem::path> folders_above_program();

// `precision`: "auto" or a name. kInvalidInput when there is none of that name.
[[nodiscard]] Result<embed::ModelOptions> model_options(const std::filesystem::path& folder,
                                                        std::string_view precision, bool use_cache_file);

// Why a model could not be loaded; a folder that is not there is the likeliest reason, and has a remedy.
[[nodiscard]] Error with_remedy(Error error, const std::filesystem::path& folder);

}  // namespace waybill::route
