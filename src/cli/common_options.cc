#include "cli/common_options.h"

#include <CLI/CLI.hpp>

#include "cli/command.h"

namespace waybill::cli {

void add_config_option(CLI::App& command, std::string& value) {
  add_file(command, "-c,--config", value,
           "The configuration; else waybill.yaml in this folder, else $WAYBILL_CONFIG");
}

void add_model_option(CLI::App& command, std::string& value) {
  add_folder(
      command, "--model", value,
      "The encoder's folder; else the configuration's, else $WAYBILL_MODEL, else models/all-MiniLM-L6-v2");
}

void add_precision_option(CLI::App& command, std::string& value) {
  add_choice(command, "--precision", value, {"auto", "f32", "bf16", "int16", "int8"},
             "The encoder's arithmetic; auto is the fastest that decides as f32 does");
}

void add_threads_option(CLI::App& command, unsigned& value) {
  constexpr unsigned kMax = 1024;
  command.add_option("--threads", value, "Computing threads; 0 is one per core")
      ->type_name("N")
      ->check(CLI::Range(0U, kMax));
}

void add_format_option(CLI::App& command, std::string& value) {
  add_choice(command, "--format", value, {"tsv", "csv", "jsonl"},
             "The format of the files, whatever their names say");
}

void add_json_flag(CLI::App& command, bool& value, const std::string& description) {
  command.add_flag("--json", value, description);
}

}  // namespace waybill::cli
