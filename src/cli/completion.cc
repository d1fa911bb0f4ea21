// `waybill completion`: each script is complete in itself and asks the program nothing when it runs.
#include "cli/completion.h"

#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace waybill::cli {
namespace {

// What the shell should offer as the value of an option.
enum class Value { kNone, kChoice, kFile, kFolder, kOther };

Value value_of(const CLI::Option& option) {
  if (!option.get_positional() && option.get_type_size() == 0) return Value::kNone;
  if (!choices_of(option).empty()) return Value::kChoice;
  const std::string type = option.get_type_name();
  if (type == kFileType) return Value::kFile;
  if (type == kFolderType) return Value::kFolder;
  return Value::kOther;
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

// The options a command takes: its own and, but for help and version, those of the commands above.
std::vector<const CLI::Option*> taken_options(const CLI::App& command) {
  std::vector<const CLI::Option*> options = visible_options(command, false);
  for (const CLI::App* above = command.get_parent(); above != nullptr; above = above->get_parent()) {
    for (const CLI::Option* option : visible_options(*above, false)) {
      if (option != above->get_help_ptr() && option != above->get_version_ptr()) options.push_back(option);
    }
  }
  return options;
}

std::string underscored(std::string path) {
  for (char& c : path) {
    if (c == ' ' || c == '-') c = '_';
  }
  return path;
}

std::string replace_all(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t i = 0; (i = text.find(what, i)) != std::string::npos; i += with.size()) {
    text.replace(i, what.size(), with);
  }
  return text;
}

std::string single_quoted(const std::string& text) { return "'" + replace_all(text, "'", "'\\''") + "'"; }

std::string bash_reply(const CLI::Option& option) {
  switch (value_of(option)) {
    case Value::kChoice:
      return fmt::format("compgen -W \"{}\" -- \"$current\"", fmt::join(choices_of(option), " "));
    case Value::kFile:
      return "compgen -f -- \"$current\"";
    case Value::kFolder:
      return "compgen -d -- \"$current\"";
    case Value::kNone:
    case Value::kOther:
      break;
  }
  return ":";
}

}  // namespace

std::string bash_completion(const CLI::App& root) {
  std::string paths;
  std::string values;
  std::string words;
  for (const CommandTree& command : all_commands(root)) {
    if (command.app != &root) paths += fmt::format("{}\"{}\"", paths.empty() ? "" : " | ", command.path);
    std::vector<std::string> list;
    for (const CLI::App* below : visible_subcommands(*command.app)) list.push_back(below->get_name());
    std::string positional = ":";
    for (const CLI::Option* option : visible_options(*command.app, true)) positional = bash_reply(*option);
    for (const CLI::Option* option : taken_options(*command.app)) {
      for (const std::string& name : names_of(*option)) {
        list.push_back(name);
        if (value_of(*option) == Value::kNone) continue;
        values += fmt::format("    \"{} {}\") mapfile -t COMPREPLY < <({}); return ;;\n", command.path, name,
                              bash_reply(*option));
      }
    }
    words +=
        fmt::format("    \"{}\") words=\"{}\"; [[ $current == -* ]] || mapfile -t COMPREPLY < <({}) ;;\n",
                    command.path, fmt::join(list, " "), positional);
  }
  return fmt::format(R"(# bash completion for {0}; made by `{0} completion bash`
_{0}() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD - 1]}}" path={0} words="" i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$path ${{COMP_WORDS[i]}}" in
      {1}) path="$path ${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$path $previous" in
{2}  esac
  case "$path" in
{3}  esac
  local -a matching
  mapfile -t matching < <(compgen -W "$words" -- "$current")
  COMPREPLY+=("${{matching[@]}}")
}}
complete -o filenames -F _{0} {0}
)",
                     root.get_name(), paths, values, words);
}

namespace {

std::string zsh_action(const CLI::Option& option) {
  switch (value_of(option)) {
    case Value::kChoice:
      return fmt::format("({})", fmt::join(choices_of(option), " "));
    case Value::kFile:
      return "_files";
    case Value::kFolder:
      return "_files -/";
    case Value::kNone:
    case Value::kOther:
      break;
  }
  return " ";
}

std::string zsh_text(std::string text) {
  for (const std::string_view special : {"\\", "[", "]", ":"}) {
    text = replace_all(std::move(text), special, "\\" + std::string(special));
  }
  return text;
}

std::string zsh_option(const CLI::Option& option) {
  std::string out;
  for (const std::string& name : names_of(option)) {
    std::string spec = name + "[" + zsh_text(option.get_description()) + "]";
    if (value_of(option) != Value::kNone) spec += ":value:" + zsh_action(option);
    out += " \\\n    " + single_quoted(spec);
  }
  return out;
}

std::string zsh_function(const CommandTree& command) {
  const std::string name = "_" + underscored(command.path);
  std::string out = name + "() {\n  local curcontext=\"$curcontext\" state line\n  _arguments -C";
  for (const CLI::Option* option : taken_options(*command.app)) out += zsh_option(*option);
  for (const CLI::Option* option : visible_options(*command.app, true)) {
    out += " \\\n    " +
           single_quoted("*:" + zsh_text(option->get_name(true, false)) + ":" + zsh_action(*option));
  }
  const auto below = visible_subcommands(*command.app);
  if (below.empty()) return out + "\n}\n";
  std::string list;
  std::string calls;
  for (const CLI::App* sub : below) {
    list += "\n        " + single_quoted(sub->get_name() + ":" + zsh_text(summary_of(*sub)));
    calls += fmt::format("        {}) {}_{} ;;\n", sub->get_name(), name, underscored(sub->get_name()));
  }
  out +=
      " \\\n    '1: :->command' \\\n    '*:: :->arguments'\n  case $state in\n    command)\n      local -a "
      "commands=(";
  out += list + ")\n      _describe command commands ;;\n    arguments)\n      case $line[1] in\n" + calls;
  return out + "      esac ;;\n  esac\n}\n";
}

}  // namespace

std::string zsh_completion(const CLI::App& root) {
  std::string out =
      fmt::format("#compdef {0}\n# zsh completion for {0}; made by `{0} completion zsh`\n", root.get_name());
  for (const CommandTree& command : all_commands(root)) out += zsh_function(command);
  return out + fmt::format("if [ \"$funcstack[1]\" = _{0} ]; then _{0} \"$@\"; else compdef _{0} {0}; fi\n",
                           root.get_name());
}

std::string fish_completion(const CLI::App& root) {
  const std::string& program = root.get_name();
  std::string out =
      fmt::format("# fish completion for {0}; made by `{0} completion fish`\ncomplete -c {0} -f\n", program);
  for (const CommandTree& command : all_commands(root)) {
    std::string condition = "__fish_use_subcommand";
    if (command.app != &root) {
      condition.clear();
      for (const std::string& word : CLI::detail::split(command.path.substr(program.size() + 1), ' ')) {
        condition += (condition.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + word);
      }
    }
    const std::string start = fmt::format("complete -c {} -n '{}'", program, condition);
    for (const CLI::App* below : visible_subcommands(*command.app)) {
      out += fmt::format("{} -a {} -d {}\n", start, below->get_name(), single_quoted(summary_of(*below)));
    }
    for (const CLI::Option* option : visible_options(*command.app, false)) {
      out += start;
      for (const std::string& name : option->get_snames()) out += " -s " + name;
      for (const std::string& name : option->get_lnames()) out += " -l " + name;
      const Value value = value_of(*option);
      if (value == Value::kChoice) out += fmt::format(" -x -a '{}'", fmt::join(choices_of(*option), " "));
      if (value == Value::kFile) out += " -r -F";
      if (value == Value::kFolder) out += " -x -a '(__fish_complete_directories)'";
      if (value == Value::kOther) out += " -x";
      out += " -d " + single_quoted(option->get_description()) + "\n";
    }
    for (const CLI::Option* option : visible_options(*command.app, true)) {
      if (value_of(*option) == Value::kFile) out += start + " -F\n";
      if (value_of(*option) == Value::kChoice)
        out += fmt::format("{} -a '{}'\n", start, fmt::join(choices_of(*option), " "));
    }
  }
  return out;
}

void add_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App& command =
      add_command(app, {.name = "completion",
                        .summary = "print the completion script of a shell",
                        .details = {},
                        .examples = "# bash, for this session\n"
                                    "source <(waybill completion bash)\n"
                                    "# zsh and fish, for good\n"
                                    "waybill completion zsh > ~/.zfunc/_waybill\n"
                                    "waybill completion fish > ~/.config/fish/completions/waybill.fish"});
  add_choice(command, "SHELL", *shell, {"bash", "zsh", "fish"}, "bash, zsh or fish")->required();
  set_action(command, [shell, &app]() -> Outcome {
    Output output;
    output.write(*shell == "bash"  ? bash_completion(app)
                 : *shell == "zsh" ? zsh_completion(app)
                                   : fish_completion(app));
    return finish(output);
  });
}

}  // namespace waybill::cli
