// Options that several commands have, declared and described once.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace waybill::cli {

void add_config_option(CLI::App& command, std::string& value);     // -c, --config FILE
void add_model_option(CLI::App& command, std::string& value);      // --model FOLDER
void add_precision_option(CLI::App& command, std::string& value);  // --precision auto|f32|...
void add_threads_option(CLI::App& command, unsigned& value);       // --threads N
void add_format_option(CLI::App& command, std::string& value);     // --format tsv|csv|jsonl
void add_json_flag(CLI::App& command, bool& value, const std::string& description);

}  // namespace waybill::cli
