// Waybill: the table of contents.
#include <CLI/App.hpp>

#include "cli/application.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  const auto app = waybill::cli::make_application(WAYBILL_VERSION);

  // Deciding
  waybill::cli::add_route(*app);
  waybill::cli::add_embed(*app);
  // Serving
  waybill::cli::add_serve(*app);
  // Jobs
  waybill::cli::add_jobs(*app);
  waybill::cli::add_dead_letters(*app);
  waybill::cli::add_queues(*app);
  // Measuring and fitting
  waybill::cli::add_eval(*app);
  waybill::cli::add_fit(*app);
  waybill::cli::add_bench(*app);
  // Setting up
  waybill::cli::add_config(*app);
  waybill::cli::add_model(*app);
  waybill::cli::add_store(*app);
  waybill::cli::add_import(*app);
  waybill::cli::add_completion(*app);
  waybill::cli::add_man(*app);

  return waybill::cli::run_application(*app, argc, argv);
}
