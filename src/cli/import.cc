// `waybill import`: configurations of other routers.
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/file.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "config/config.h"
#include "config/import_semantic_router.h"

namespace waybill::cli {
namespace {

Outcome run_import_semantic_router(const std::string& file) {
  const Result<std::string> text = read_file(file, config::kMaxFileBytes);
  if (!text) return std::unexpected(text.error());
  const auto imported =
      config::import_semantic_router(*text, std::filesystem::path(file).filename().string());
  if (!imported) return std::unexpected(imported.error());

  Output output;
  output.write(imported->yaml);
  if (Outcome finished = finish(output); !finished) return finished;
  if (const std::size_t count = imported->notes.size(); count > 0) {
    print_note(count == 1 ? "one thing could not be carried over; a comment at the top says which"
                          : fmt::format("{} things could not be carried over; comments at the top say which",
                                        count));
  }
  if (const auto config = config::parse(imported->yaml)) {
    for (const config::Diagnostic& warning : config->warnings) print_note(warning.message);
  } else {
    return fail(ErrorCode::kInternal, "the imported configuration is not accepted: " + config.error().text());
  }
  return ExitCode::kDone;
}

}  // namespace

void add_import(CLI::App& app) {
  CLI::App& command =
      add_command(app, {.name = "import",
                        .summary = "turn another router's configuration into a waybill.yaml",
                        .details = {},
                        .examples = "waybill import semantic-router layer.json > waybill.yaml"});
  command.require_subcommand(1);
  auto file = std::make_shared<std::string>();
  CLI::App& semantic_router =
      add_command(command, {.name = "semantic-router",
                            .summary = "read what the semantic-router library saved",
                            .details = "Reads the JSON or YAML that to_json() or to_yaml() of RouteLayer, "
                                       "SemanticRouter or the routers of version 1 "
                                       "wrote, and prints a complete waybill.yaml. Its comments say what "
                                       "could not be carried over, and how to "
                                       "score as that library does.",
                            .examples = "waybill import semantic-router layer.json > waybill.yaml\n"
                                        "waybill config check waybill.yaml"});
  add_file(semantic_router, "file", *file, "The saved router")->required();
  set_action(semantic_router, [file] { return run_import_semantic_router(*file); });
}

}  // namespace waybill::cli
