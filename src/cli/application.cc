#include "cli/application.h"

#include <algorithm>
#include <csignal>
#include <exception>
#include <new>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/suggest.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/terminal.h"

namespace waybill::cli {
namespace {

// The command that the words so far have chosen, and how it is called.
struct Chosen {
  const CLI::App* app;
  std::string path;
};

Chosen chosen_command(const CLI::App& root) {
  Chosen chosen = {&root, root.get_name()};
  for (;;) {
    const auto below = chosen.app->get_subcommands();
    if (below.empty()) return chosen;
    chosen.app = below.back();
    chosen.path += " " + below.back()->get_name();
  }
}

// The first word that no command took.
std::string unexpected_word(const CLI::App& root) {
  for (const CLI::App* app = chosen_command(root).app; app != nullptr; app = app->get_parent()) {
    if (const auto words = app->remaining(); !words.empty()) {
      return words.front().starts_with('\0') ? words.front().substr(1) : words.front();
    }
  }
  return {};
}

std::string suggest(std::string_view word, const std::vector<std::string>& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  return did_you_mean(word, views);
}

std::string unknown_option(const Chosen& chosen, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* app = chosen.app; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : visible_options(*app, false)) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  const std::string name = word.substr(0, word.find('='));
  const std::string suggestion = suggest(name, names);
  // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): a command has always been chosen
  const bool takes_text = !visible_options(*chosen.app, true).empty();
  return fmt::format("{} has no option {}{}", chosen.path, name,
                     suggestion.empty() && takes_text
                         ? "; an argument that starts with a dash goes after \"--\""
                         : suggestion);
}

std::string unknown_command(const Chosen& chosen, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* sub : visible_subcommands(*chosen.app)) names.push_back(sub->get_name());
  if (word.empty()) return fmt::format("{} needs a command: {}", chosen.path, fmt::join(names, ", "));
  return fmt::format("{} has no command \"{}\"{}", chosen.path, word, suggest(word, names));
}

std::string usage_error(const CLI::App& root, const CLI::ParseError& error) {
  const Chosen chosen = chosen_command(root);
  const bool missing_or_extra = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr ||
                                dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  if (!missing_or_extra) return fmt::format("{}: {}", chosen.path, error.what());
  const std::string word = unexpected_word(root);
  if (word.size() > 1 && word.starts_with('-')) return unknown_option(chosen, word);
  if (!visible_subcommands(*chosen.app).empty()) return unknown_command(chosen, word);
  if (!word.empty()) return fmt::format("{} takes no argument \"{}\"", chosen.path, word);
  return fmt::format("{}: {}", chosen.path, error.what());
}

int print_and_exit(const std::string& text) {
  Output output;
  output.write(text);
  if (const Status written = output.flush(); !written) {
    print_error(written.error().message);
    return static_cast<int>(ExitCode::kIo);
  }
  return 0;
}

int parse_and_run(CLI::App& root, std::vector<std::string> words) {
  try {
    root.parse(std::move(words));
    return 0;
  } catch (const CLI::CallForHelp&) {
    const Chosen chosen = chosen_command(root);
    return print_and_exit(help_text(*chosen.app, chosen.path, terminal_width(Stream::kOut)));
  } catch (const CLI::CallForVersion& version) {
    return print_and_exit(std::string(version.what()) + "\n");
  } catch (const CLI::RuntimeError& ended) {
    return ended.get_exit_code();
  } catch (const CLI::ParseError& error) {
    print_error(usage_error(root, error));
    return static_cast<int>(ExitCode::kUsage);
  }
}

}  // namespace

std::unique_ptr<CLI::App> make_application(const std::string& version) {
  auto app = std::make_unique<CLI::App>(
      "decide which model a prompt should go to\n\n"
      "Waybill reads routes from waybill.yaml and decides, with a sentence encoder that runs in this "
      "process, which "
      "route a prompt takes and so which model serves it.",
      "waybill");
  app->set_help_flag("-h,--help", "Show this help");
  app->set_version_flag("--version", "waybill " + version, "Show the version");
  app->add_option_function<std::string>(
         "--color",
         [](const std::string& when) {
           set_color(when == "always"  ? ColorChoice::kAlways
                     : when == "never" ? ColorChoice::kNever
                                       : ColorChoice::kAuto);
         },
         "Colours: on a terminal only (auto), always or never; NO_COLOR is honoured")
      ->type_name("auto|always|never")
      ->check(one_of({"auto", "always", "never"}), "", "choice")
      ->trigger_on_parse();
  app->footer(
      "waybill route \"what is the refund policy?\"\n"
      "waybill route --explain < prompts.txt\n"
      "waybill config check\n"
      "waybill route --help");
  app->require_subcommand(1);
  return app;
}

int run_application(CLI::App& root, int argc, const char* const* argv) {
  // A reader that has gone away ends the program quietly, whatever the parent process set.
  std::signal(SIGPIPE, SIG_DFL);
  if (argc <= 1) {
    fmt::print(stderr, "{}", help_text(root, root.get_name(), terminal_width(Stream::kErr)));
    return static_cast<int>(ExitCode::kUsage);
  }
  try {
    unprotect_values(root);
    std::vector<std::string> words = protect_arguments({argv + 1, static_cast<std::size_t>(argc - 1)});
    std::ranges::reverse(words);  // CLI11 takes them last first
    return parse_and_run(root, std::move(words));
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
  } catch (const std::exception& error) {
    print_error(fmt::format("internal error: {}", error.what()));
  }
  return static_cast<int>(ExitCode::kInternal);
}

}  // namespace waybill::cli
