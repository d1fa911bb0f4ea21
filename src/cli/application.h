// The command line as a whole: what all subcommands share, and how a run ends.
#pragma once

#include <memory>
#include <string>

namespace CLI {
class App;
}

namespace waybill::cli {

// The root command without subcommands: name, version, --color, and the form of the help text.
[[nodiscard]] std::unique_ptr<CLI::App> make_application(const std::string& version);

// Parses the arguments and runs what they ask for. Everything that goes wrong becomes one sentence on stderr
// and an exit code (command.h).
[[nodiscard]] int run_application(CLI::App& application, int argc, const char* const* argv);

// What `COMMAND --help` prints, `width` columns wide.
[[nodiscard]] std::string help_text(const CLI::App& command, const std::string& path, std::size_t width);

}  // namespace waybill::cli
