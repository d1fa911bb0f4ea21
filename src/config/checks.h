// What can only be checked once the whole configuration has been read.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "config/config.h"

namespace waybill::config {

// Fills in what follows from other settings (names of rules, models of routes) and appends what is wrong to
// `errors` and what is worth a look to config.warnings. `lines` says where each given key stands
// ("head.top_k" -> 7).
void complete_and_check(Config& config, const std::map<std::string, int, std::less<>>& lines,
                        const std::string& file, std::vector<Diagnostic>& errors);

}  // namespace waybill::config
