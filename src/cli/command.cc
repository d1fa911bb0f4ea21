#include "cli/command.h"

#include <algorithm>
#include <cstdio>
#include <span>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/suggest.h"
#include "base/utf8.h"
#include "cli/output.h"
#include "cli/terminal.h"

namespace waybill::cli {

std::vector<ExitCodeMeaning> exit_code_meanings() {
  return {{ExitCode::kDone, "done"},
          {ExitCode::kNo, "done, and the answer is no (config check found errors, a job has failed)"},
          {ExitCode::kUsage, "the command line is wrong"},
          {ExitCode::kData, "the input is wrong (a file that cannot be understood)"},
          {ExitCode::kNoInput, "a file, a model or a job is not there"},
          {ExitCode::kUnavailable, "the server is not there, or cannot do it now"},
          {ExitCode::kInternal, "our own fault"},
          {ExitCode::kIo, "the operating system refused to read or write"},
          {ExitCode::kNoPermission, "the server does not know the key, or the key may not do it"}};
}

ExitCode exit_code_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidInput:
    case ErrorCode::kUnsupported:
    case ErrorCode::kMethodNotAllowed:
    case ErrorCode::kKeyReused:
    case ErrorCode::kCorrupt:
      return ExitCode::kData;
    case ErrorCode::kUnauthenticated:
    case ErrorCode::kPermissionDenied:
      return ExitCode::kNoPermission;
    case ErrorCode::kNotFound:
      return ExitCode::kNoInput;
    case ErrorCode::kIo:
    case ErrorCode::kStoreUnavailable:
      return ExitCode::kIo;
    case ErrorCode::kOverloaded:
    case ErrorCode::kRateLimited:
    case ErrorCode::kQuotaExceeded:
    case ErrorCode::kUpstreamFailed:
    case ErrorCode::kUpstreamTimeout:
      return ExitCode::kUnavailable;
    case ErrorCode::kDeadlineExceeded:
    case ErrorCode::kCancelled:
    case ErrorCode::kShuttingDown:
    case ErrorCode::kInternal:
      break;
  }
  return ExitCode::kInternal;
}

Outcome finish(Output& output) {
  const Status written = output.flush();
  if (!written) return std::unexpected(written.error());
  return ExitCode::kDone;
}

CLI::App& add_command(CLI::App& parent, CommandText text) {
  std::string description = std::move(text.summary);
  if (!text.details.empty()) description += "\n\n" + text.details;
  CLI::App* command = parent.add_subcommand(text.name, description);
  command->footer(text.examples);
  command->fallthrough();
  return *command;
}

void set_action(CLI::App& command, std::function<Outcome()> action) {
  command.final_callback([action = std::move(action)] {
    const Outcome outcome = action();
    if (!outcome) print_error(outcome.error().message);
    const ExitCode code = outcome ? *outcome : exit_code_of(outcome.error().code);
    if (code != ExitCode::kDone) throw CLI::RuntimeError(static_cast<int>(code));
  });
}

CLI::Option* add_choice(CLI::App& command, const std::string& name, std::string& value,
                        std::initializer_list<std::string> choices, const std::string& description) {
  return command.add_option(name, value, description)
      ->type_name(fmt::format("{}", fmt::join(choices, "|")))
      ->check(one_of(choices), "", "choice");
}

std::function<std::string(const std::string&)> one_of(std::vector<std::string> words) {
  return [words = std::move(words)](const std::string& word) {
    if (std::ranges::find(words, word) != words.end()) return std::string();
    const std::vector<std::string_view> names(words.begin(), words.end());
    return fmt::format("\"{}\" is not one of {}{}", word, fmt::join(words, ", "), did_you_mean(word, names));
  };
}

CLI::Option* add_file(CLI::App& command, const std::string& name, std::string& value,
                      const std::string& description) {
  return command.add_option(name, value, description)->type_name(std::string(kFileType));
}

CLI::Option* add_folder(CLI::App& command, const std::string& name, std::string& value,
                        const std::string& description) {
  return command.add_option(name, value, description)->type_name(std::string(kFolderType));
}

CLI::Option* add_texts(CLI::App& command, std::vector<std::string>& texts, const std::string& description) {
  return command.add_option("TEXT", texts, description)
      ->type_name("TEXT")
      ->expected(0, -1)
      ->allow_extra_args();
}

std::vector<std::string> protect_arguments(std::span<const char* const> arguments) {
  std::vector<std::string> words;
  bool plain = false;  // after "--"
  for (const std::string_view word : arguments) {
    if (!plain && word == "--") {
      plain = true;
      continue;
    }
    const bool syntax =
        word == "++" || word == "{}" || (word.size() >= 2 && word.starts_with('[') && word.ends_with(']'));
    words.push_back(plain || syntax ? '\0' + std::string(word) : std::string(word));
  }
  return words;
}

void unprotect_values(CLI::App& root) {
  const auto strip = [](std::string& word) {
    if (word.starts_with('\0')) word.erase(0, 1);
    return std::string();
  };
  for (const CommandTree& command : all_commands(root)) {
    for (CLI::Option* option : const_cast<CLI::App*>(command.app)->get_options()) {
      if (option->get_type_size() != 0) option->transform(CLI::Validator(strip, "", "protection"));
    }
  }
}

namespace {

void print_line(std::string_view prefix, std::string_view message) {
  std::string line = std::string(prefix) + to_valid_utf8(message);
  while (line.ends_with('\n')) line.pop_back();
  fmt::print(stderr, "{}\n", line);
}

}  // namespace

void print_error(std::string_view message) {
  print_line(paint(Style::kRed, "waybill:", Stream::kErr) + " ", message);
}

void print_note(std::string_view message) {
  print_line(paint(Style::kYellow, "waybill: note:", Stream::kErr) + " ", message);
}

std::vector<CommandTree> all_commands(const CLI::App& root) {
  std::vector<CommandTree> commands = {{&root, root.get_name()}};
  for (std::size_t i = 0; i < commands.size(); ++i) {
    std::size_t at = i + 1;
    for (const CLI::App* below : visible_subcommands(*commands[i].app)) {
      const std::string path = commands[i].path + " " + below->get_name();
      commands.insert(commands.begin() + static_cast<std::ptrdiff_t>(at++), {below, path});
    }
  }
  return commands;
}

std::string summary_of(const CLI::App& command) {
  const std::string text = command.get_description();
  return text.substr(0, text.find('\n'));
}

std::string details_of(const CLI::App& command) {
  const std::string text = command.get_description();
  const std::size_t end = text.find("\n\n");
  return end == std::string::npos ? std::string() : text.substr(end + 2);
}

std::vector<const CLI::App*> visible_subcommands(const CLI::App& command) {
  return command.get_subcommands(
      [](const CLI::App* app) { return !app->get_name().empty() && !app->get_group().empty(); });
}

std::vector<const CLI::Option*> visible_options(const CLI::App& command, bool positional) {
  return command.get_options([positional](const CLI::Option* option) {
    return !option->get_group().empty() && option->get_positional() == positional;
  });
}

std::string option_signature(const CLI::Option& option) {
  if (option.get_positional()) {
    const bool many = option.get_expected_max() > 1;
    return option.get_name(true, false) + (many ? "..." : "");
  }
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  std::string signature = fmt::format("{}", fmt::join(names, ", "));
  if (option.get_type_size() != 0) signature += " " + option.get_type_name();
  return signature;
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  std::vector<std::string> words;
  const std::string type = option.get_type_size() == 0 ? std::string() : option.get_type_name();
  if (type.find('|') == std::string::npos) return words;
  for (const std::string& word : CLI::detail::split(type, '|')) words.push_back(word);
  return words;
}

}  // namespace waybill::cli
