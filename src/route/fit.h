// What `waybill fit` leaves for the next start: labelled examples that the head is fitted on together with
// the utterances of the configuration.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "config/config.h"
#include "route/dataset.h"

namespace waybill::route {

// The file, in the configuration's cache folder: label<TAB>text a line, so that a person can read, edit or
// delete it.
[[nodiscard]] std::filesystem::path fit_file(const config::Config& config);

// No examples when there is no such file; an error with file:line when it cannot be understood.
[[nodiscard]] Result<Dataset> load_fit(const config::Config& config);

// Replaces the file; removes it when there are no examples. Tabs and line ends in texts become spaces, which
// no tokenizer can tell from them.
[[nodiscard]] Status save_fit(const config::Config& config, const Dataset& examples);

}  // namespace waybill::route
