// The help text of a command.
#include <algorithm>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "cli/application.h"
#include "cli/command.h"
#include "cli/terminal.h"

namespace waybill::cli {
namespace {

constexpr std::size_t kIndent = 2;
constexpr std::size_t kMaxNameColumn = 30;

struct Entry {
  std::string name, text;
};

// Names in one column, their texts wrapped in the next.
std::string entries(const std::string& title, const std::vector<Entry>& list, std::size_t width) {
  if (list.empty()) return {};
  std::size_t column = 0;
  for (const Entry& entry : list) {
    if (const std::size_t size = display_width(entry.name); size <= kMaxNameColumn)
      column = std::max(column, size);
  }
  std::string out = "\n" + paint(Style::kBold, title) + "\n";
  const std::size_t left = kIndent + column + 2;
  for (const Entry& entry : list) {
    const std::size_t size = display_width(entry.name);
    out += std::string(kIndent, ' ') + paint(Style::kCyan, entry.name);
    std::size_t at = kIndent + size;
    if (size > column) {
      out += '\n';
      at = 0;
    }
    for (const std::string& line : wrap(entry.text, std::max<std::size_t>(width, left + 30) - left)) {
      out += std::string(left - at, ' ') + line + '\n';
      at = 0;
    }
  }
  return out;
}

std::string usage(const CLI::App& command, const std::string& path) {
  std::string line = path + " [OPTIONS]";
  for (const CLI::Option* option : visible_options(command, true)) {
    const std::string name = option_signature(*option);
    line += option->get_required() ? " " + name : " [" + name + "]";
  }
  if (!visible_subcommands(command).empty()) line += " COMMAND";
  return paint(Style::kBold, "Usage:") + " " + line + "\n";
}

std::string subcommands(const CLI::App& command, std::size_t width) {
  std::vector<std::string> groups;
  std::vector<std::vector<Entry>> lists;
  for (const CLI::App* sub : visible_subcommands(command)) {
    const auto found = std::ranges::find(groups, sub->get_group());
    if (found == groups.end()) {
      groups.push_back(sub->get_group());
      lists.emplace_back();
    }
    const auto index = std::ranges::find(groups, sub->get_group()) - groups.begin();
    lists[static_cast<std::size_t>(index)].push_back({sub->get_name(), summary_of(*sub)});
  }
  std::string out;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    out += entries((groups[i] == "Subcommands" ? "Commands" : groups[i]) + ":", lists[i], width);
  }
  return out;
}

std::string options(const CLI::App& command, std::size_t width) {
  std::vector<Entry> arguments;
  for (const CLI::Option* option : visible_options(command, true)) {
    arguments.push_back({option_signature(*option), option->get_description()});
  }
  std::vector<Entry> own;
  for (const CLI::Option* option : visible_options(command, false)) {
    own.push_back({option_signature(*option), option->get_description()});
  }
  std::vector<Entry> shared;
  for (const CLI::App* above = command.get_parent(); above != nullptr; above = above->get_parent()) {
    for (const CLI::Option* option : visible_options(*above, false)) {
      if (option != above->get_help_ptr() && option != above->get_version_ptr()) {
        shared.push_back({option_signature(*option), option->get_description()});
      }
    }
  }
  own.insert(own.end(), shared.begin(), shared.end());
  return entries("Arguments:", arguments, width) + entries("Options:", own, width);
}

std::string examples(const CLI::App& command) {
  const std::string text = command.get_footer();
  if (text.empty()) return {};
  std::string out = "\n" + paint(Style::kBold, "Examples:") + "\n";
  for (const std::string& line : wrap(text, 10'000)) {
    out += "  " + (line.starts_with('#') ? paint(Style::kDim, line) : line) + "\n";
  }
  return out;
}

}  // namespace

std::string help_text(const CLI::App& command, const std::string& path, std::size_t width) {
  width = std::clamp<std::size_t>(width, 40, 110);
  const std::string summary = summary_of(command);
  std::string out;
  for (const std::string& line : wrap(fmt::format("{} - {}", path, summary), width))
    out.append(line).append("\n");
  out += "\n" + usage(command, path);
  if (const std::string details = details_of(command); !details.empty()) {
    out += "\n";
    for (const std::string& line : wrap(details, width)) out += line + "\n";
  }
  out += subcommands(command, width);
  out += options(command, width);
  out += examples(command);
  return out;
}

}  // namespace waybill::cli
