// What the subcommands have in common: how they are declared, how they end, how they fail.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/App.hpp>

#include "base/result.h"

namespace waybill::cli {

// The codes after sysexits.h; src/cli/README.md and every man page list them.
enum class ExitCode : int {
  kDone = 0,
  kNo = 1,            // done, and the answer is no
  kUsage = 2,         // the command line is wrong
  kData = 65,         // the input cannot be understood
  kNoInput = 66,      // a file, a folder, a model or a job is not there
  kUnavailable = 69,  // a server is not there, or cannot do it now
  kInternal = 70,
  kIo = 74,            // the operating system refused to read or write
  kNoPermission = 77,  // a server does not know the key, or it may not
};

struct ExitCodeMeaning {
  ExitCode code;
  std::string_view meaning;
};
[[nodiscard]] std::vector<ExitCodeMeaning> exit_code_meanings();

[[nodiscard]] ExitCode exit_code_of(ErrorCode code) noexcept;

// How an action ends: with a code, or with an error, which is printed and becomes its code.
using Outcome = Result<ExitCode>;

// Sends what is buffered: kDone, or why it did not arrive.
class Output;
[[nodiscard]] Outcome finish(Output& output);

struct CommandText {
  std::string name;
  std::string summary;   // one line, lower case, no full stop
  std::string details;   // paragraphs of the help text and the man page; may be empty
  std::string examples;  // lines "waybill ...", and comments starting with #
};

// Adds a subcommand below `parent`.
CLI::App& add_command(CLI::App& parent, CommandText text);

// What the subcommand does when it is the one chosen.
void set_action(CLI::App& command, std::function<Outcome()> action);

// An option that takes one of a few words; shown, checked and completed as such.
CLI::Option* add_choice(CLI::App& command, const std::string& name, std::string& value,
                        std::initializer_list<std::string> choices, const std::string& description);

// The check behind it: empty, or why the word is not one of them.
[[nodiscard]] std::function<std::string(const std::string&)> one_of(std::vector<std::string> words);

// Options that name a file or a folder, which completion then offers.
CLI::Option* add_file(CLI::App& command, const std::string& name, std::string& value,
                      const std::string& description);
CLI::Option* add_folder(CLI::App& command, const std::string& name, std::string& value,
                        const std::string& description);
inline constexpr std::string_view kFileType = "FILE";
inline constexpr std::string_view kFolderType = "FOLDER";

// Any number of texts, each taken as it stands.
CLI::Option* add_texts(CLI::App& command, std::vector<std::string>& texts, const std::string& description);

// CLI11 would take "[SEP]", "{}" and "++" for syntax of its own, and gives what follows "--" to the wrong
// command. Such words get a NUL in front, which no argument can have, and unprotect_values() has it taken off
// every value.
[[nodiscard]] std::vector<std::string> protect_arguments(std::span<const char* const> arguments);
void unprotect_values(CLI::App& root);

// "waybill: MESSAGE" on stderr, one line, on a line of its own.
void print_error(std::string_view message);
// "waybill: note: MESSAGE": worth knowing, not a failure.
void print_note(std::string_view message);

// Names, summaries and options as the help text, the man pages and the completions use them.
struct CommandTree {
  const CLI::App* app;
  std::string path;  // "waybill model info"
};
// The command and all below it, in the order of the help text; `root` first.
[[nodiscard]] std::vector<CommandTree> all_commands(const CLI::App& root);
[[nodiscard]] std::string summary_of(const CLI::App& command);
[[nodiscard]] std::string details_of(const CLI::App& command);
[[nodiscard]] std::vector<const CLI::App*> visible_subcommands(const CLI::App& command);
// Options that are shown; positionals when `positional`.
[[nodiscard]] std::vector<const CLI::Option*> visible_options(const CLI::App& command, bool positional);
// "-t,--threads N", "TEXT..."
[[nodiscard]] std::string option_signature(const CLI::Option& option);
// The words an option takes, when it takes one of a few.
[[nodiscard]] std::vector<std::string> choices_of(const CLI::Option& option);

}  // namespace waybill::cli
