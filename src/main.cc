// Waybill: the table of contents.
#include <CLI/CLI.hpp>

#include "cli/commands.h"

int main(int argc, char** argv) {
  CLI::App app("Waybill: the LLM gateway that never loses a request", "waybill");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("waybill ") + WAYBILL_VERSION);

  // Deciding
  waybill::cli::add_route(app);
  waybill::cli::add_embed(app);
  // Measuring and fitting
  waybill::cli::add_eval(app);
  waybill::cli::add_fit(app);
  waybill::cli::add_bench(app);
  // Setting up
  waybill::cli::add_config(app);
  waybill::cli::add_model(app);
  waybill::cli::add_import(app);
  waybill::cli::add_completion(app);

  CLI11_PARSE(app, argc, argv);
  return 0;
}
