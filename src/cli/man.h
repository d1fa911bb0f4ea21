// Manual pages from the declarations of the commands.
#pragma once

#include <string>

#include "cli/command.h"

namespace waybill::cli {

// The page of one command in roff (man(7)); `root` is the whole application.
[[nodiscard]] std::string man_page(const CLI::App& root, const CommandTree& command);

}  // namespace waybill::cli
