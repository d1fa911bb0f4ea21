// `waybill config`: check, show and schema.
#include "config/config.h"

#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/locate.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "config/schema.h"
#include "route/rules.h"

namespace waybill::cli {
namespace {

struct ConfigOptions {
  std::string file;
  bool json = false;
};

struct Findings {
  std::vector<config::Diagnostic> errors, warnings;
};

void write_json(std::string& out, const Findings& findings) {
  JsonWriter json(out);
  json.begin_array();
  const auto write = [&json](std::string_view severity, const std::vector<config::Diagnostic>& diagnostics) {
    for (const config::Diagnostic& diagnostic : diagnostics) {
      json.begin_object().key("severity").string(severity).key("file").string(diagnostic.position.file);
      json.key("line");
      if (diagnostic.position.line > 0) {
        json.integer(diagnostic.position.line);
      } else {
        json.null();
      }
      json.key("key").string(diagnostic.key).key("message").string(diagnostic.message).end_object();
    }
  };
  write("error", findings.errors);
  write("warning", findings.warnings);
  json.end_array();
  out += '\n';
}

// As compilers write them, so that editors find the line: "FILE:LINE: error: MESSAGE".
void print_findings(const Findings& findings) {
  const auto print = [](std::string_view severity, Style style,
                        const std::vector<config::Diagnostic>& diagnostics) {
    for (const config::Diagnostic& diagnostic : diagnostics) {
      fmt::print(stderr, "{} {} {}\n", paint(Style::kBold, diagnostic.position.text() + ":", Stream::kErr),
                 paint(style, fmt::format("{}:", severity), Stream::kErr), diagnostic.message);
    }
  };
  print("error", Style::kRed, findings.errors);
  print("warning", Style::kYellow, findings.warnings);
}

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

Outcome run_check(const ConfigOptions& options) {
  const auto file = find_config(options.file);
  if (!file) return std::unexpected(file.error());
  auto config = config::load(*file);
  Findings findings;
  if (config) {
    findings.warnings = config->warnings;
    if (const auto rules = route::RuleSet::compile(*config); !rules) {
      findings.errors.push_back({{file->string(), 0}, "rules", rules.error().message});
    }
  } else {
    findings = {config.error().errors, config.error().warnings};
  }

  Output output;
  std::string text;
  if (options.json) {
    write_json(text, findings);
  } else {
    print_findings(findings);
    if (findings.errors.empty()) {
      std::size_t utterances = 0;
      for (const config::Route& route : config->routes) utterances += route.utterances.size();
      text = fmt::format("{}: {}, {} with {}, {}\n", file->string(), paint(Style::kGreen, "no errors"),
                         counted(config->routes.size(), "route"), counted(utterances, "utterance"),
                         counted(config->rules.size(), "rule"));
      if (!config->models.empty() || !config->providers.empty()) {
        text.insert(text.size() - 1, fmt::format(", {} at {}", counted(config->models.size(), "model"),
                                                 counted(config->providers.size(), "provider")));
      }
      if (!config->store.path.empty())
        text.insert(text.size() - 1, fmt::format(", {}", counted(config->jobs.queues.size(), "queue")));
    }
  }
  output.write(text);
  if (Outcome finished = finish(output); !finished) return finished;
  return findings.errors.empty() ? ExitCode::kDone : ExitCode::kNo;
}

Outcome run_show(const ConfigOptions& options) {
  const auto file = find_config(options.file);
  if (!file) return std::unexpected(file.error());
  const auto config = config::load(*file);
  if (!config) {
    print_findings({config.error().errors, config.error().warnings});
    return ExitCode::kData;
  }
  Output output;
  output.write(options.json ? to_json(*config) + "\n" : to_yaml(*config));
  return finish(output);
}

Outcome run_schema() {
  Output output;
  output.write(config::json_schema());
  return finish(output);
}

}  // namespace

void add_config(CLI::App& app) {
  CLI::App& command = add_command(app, {.name = "config",
                                        .summary = "check and show the configuration",
                                        .details = "docs/config.md describes every setting of waybill.yaml.",
                                        .examples = "waybill config check\n"
                                                    "waybill config show --json other.yaml\n"
                                                    "waybill config schema > waybill.schema.json"});
  command.require_subcommand(1);
  auto options = std::make_shared<ConfigOptions>();
  const std::string which = "The configuration; else waybill.yaml in the current folder, or $WAYBILL_CONFIG";

  CLI::App& check = add_command(
      command,
      {.name = "check",
       .summary = "tell everything that is wrong with a configuration",
       .details =
           "Prints all errors and warnings at once, each with file and line, what is wrong and the likely "
           "fix. Ends with 0 when there are no errors and with 1 when there are; warnings change nothing.",
       .examples = "waybill config check\n"
                   "waybill config check --json waybill.yaml | jq -r '.[].message'"});
  add_file(check, "file", options->file, which);
  check.add_flag("--json", options->json, "A list of objects with severity, file, line, key and message");
  set_action(check, [options] { return run_check(*options); });

  CLI::App& show = add_command(
      command, {.name = "show",
                .summary = "print the configuration with every default filled in",
                .details = "Paths are resolved and utterances read from their files; the output is "
                           "a configuration itself, but for the hashes of API keys, which are hidden.",
                .examples = "waybill config show\n"
                            "waybill config show --json | jq .encoder"});
  add_file(show, "file", options->file, which);
  show.add_flag("--json", options->json, "As one JSON object");
  set_action(show, [options] { return run_show(*options); });

  CLI::App& schema = add_command(
      command, {.name = "schema",
                .summary = "print the JSON Schema of waybill.yaml",
                .details = "Draft 2020-12, for editors that complete and check keys while you type.",
                .examples = "waybill config schema > waybill.schema.json\n"
                            "# then, as the first line of waybill.yaml:\n"
                            "# yaml-language-server: $schema=waybill.schema.json"});
  set_action(schema, [] { return run_schema(); });
}

}  // namespace waybill::cli
