// What can only be checked of the server's sections once all of them have been read.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "config/config.h"

namespace waybill::config {

// As complete_and_check() in checks.h, which calls it.
void check_server(Config& config, const std::map<std::string, int, std::less<>>& lines,
                  const std::string& file, std::vector<Diagnostic>& errors);

}  // namespace waybill::config
