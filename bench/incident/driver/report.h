// The table on standard output and the JSON file.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scenarios.h"

namespace burst {

using Medians = std::vector<std::pair<std::string, Metrics>>;  // by scenario, in order
using Runs = std::map<std::string, std::vector<Metrics>>;

void print_table(const std::string& label, const Medians& rows);

// False where the file cannot be written.
[[nodiscard]] bool write_json(const Options& options, const Medians& medians, const Runs& runs);

}  // namespace burst
