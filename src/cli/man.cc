// `waybill man`: the manual pages, from the same declarations as the help text.
#include "cli/man.h"

#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/file.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace waybill::cli {
namespace {

// Text as roff takes it: backslashes, leading dots and quotes, hyphens that are minus signs.
std::string roff(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool line_start = i == 0 || text[i - 1] == '\n';
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string upper(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

std::string hyphenated(std::string path) {
  for (char& c : path) {
    if (c == ' ') c = '-';
  }
  return path;
}

std::string option_list(const std::vector<const CLI::Option*>& options) {
  std::string out;
  for (const CLI::Option* option : options) {
    out += fmt::format(".TP\n.B {}\n{}\n", roff(option_signature(*option)), roff(option->get_description()));
  }
  return out;
}

std::string synopsis(const CommandTree& command) {
  std::string out = fmt::format(".SH SYNOPSIS\n.B {}\n[OPTIONS]", roff(command.path));
  for (const CLI::Option* option : visible_options(*command.app, true)) {
    const std::string name = roff(option_signature(*option));
    out += option->get_required() ? " " + name : " [" + name + "]";
  }
  return out + (visible_subcommands(*command.app).empty() ? "\n" : " COMMAND\n");
}

std::string commands_section(const CommandTree& command) {
  std::string out;
  for (const CLI::App* below : visible_subcommands(*command.app)) {
    out += fmt::format(".TP\n.BR {}-{} (1)\n{}\n", roff(hyphenated(command.path)), roff(below->get_name()),
                       roff(summary_of(*below)));
  }
  return out.empty() ? out : ".SH COMMANDS\n" + out;
}

std::string exit_status() {
  std::string out = ".SH EXIT STATUS\n";
  for (const ExitCodeMeaning& entry : exit_code_meanings()) {
    out += fmt::format(".TP\n.B {}\n{}\n", static_cast<int>(entry.code), roff(entry.meaning));
  }
  return out;
}

}  // namespace

std::string man_page(const CLI::App& root, const CommandTree& command) {
  const std::string name = hyphenated(command.path);
  std::string out = fmt::format(".TH {} 1 \"\" \"{}\" \"Waybill\"\n", upper(name), root.version());
  out += fmt::format(".SH NAME\n{} \\- {}\n", roff(name), roff(summary_of(*command.app)));
  out += synopsis(command);
  if (const std::string details = details_of(*command.app); !details.empty()) {
    out += ".SH DESCRIPTION\n";
    for (std::string_view rest = details; !rest.empty();) {
      const std::size_t end = std::min(rest.find("\n\n"), rest.size());
      out += ".PP\n" + roff(rest.substr(0, end)) + "\n";
      rest.remove_prefix(std::min(end + 2, rest.size()));
    }
  }
  out += commands_section(command);
  if (const auto list = visible_options(*command.app, true); !list.empty()) {
    out += ".SH ARGUMENTS\n" + option_list(list);
  }
  out += ".SH OPTIONS\n" + option_list(visible_options(*command.app, false));
  for (std::string above = command.path; above.find(' ') != std::string::npos;) {
    above.resize(above.rfind(' '));
    out += fmt::format(".PP\nThe options of\n.BR {} (1)\nare taken too.\n", roff(hyphenated(above)));
  }
  if (const std::string examples = command.app->get_footer(); !examples.empty()) {
    out += ".SH EXAMPLES\n.nf\n" + roff(examples) + "\n.fi\n";
  }
  out += exit_status();
  if (command.app != &root) {
    const std::string above = hyphenated(command.path.substr(0, command.path.rfind(' ')));
    out += fmt::format(".SH SEE ALSO\n.BR {} (1)\n", roff(above));
  }
  return out;
}

namespace {

struct ManOptions {
  std::vector<std::string> command;
  std::string folder;
};

Outcome run_man(const CLI::App& root, const ManOptions& options) {
  if (!options.folder.empty()) {
    for (const CommandTree& command : all_commands(root)) {
      const auto path = std::filesystem::path(options.folder) / (hyphenated(command.path) + ".1");
      if (const Status written = write_file_atomically(path, man_page(root, command)); !written) {
        return std::unexpected(written.error());
      }
    }
    return ExitCode::kDone;
  }
  std::string path = root.get_name();
  for (const std::string& word : options.command) path += " " + word;
  for (const CommandTree& command : all_commands(root)) {
    if (command.path != path) continue;
    Output output;
    output.write(man_page(root, command));
    return finish(output);
  }
  return fail(ErrorCode::kInvalidInput,
              fmt::format("there is no command \"{}\" to show the manual of", path));
}

}  // namespace

void add_man(CLI::App& app) {
  auto options = std::make_shared<ManOptions>();
  CLI::App& command =
      add_command(app, {.name = "man",
                        .summary = "print a manual page",
                        .details = "Prints the manual page of a command in the roff format that man "
                                   "reads, or writes the pages of all commands to a folder.",
                        .examples = "waybill man route | man -l -\n"
                                    "waybill man --output share/man/man1"});
  command
      .add_option("COMMAND", options->command,
                  "The command, as it is called (\"model info\"); waybill itself if none")
      ->type_name("COMMAND");
  add_folder(command, "--output", options->folder, "Write all pages to this folder");
  set_action(command, [options, &app] { return run_man(app, *options); });
}

}  // namespace waybill::cli
