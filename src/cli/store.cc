// `waybill store`: the file that jobs are kept in, seen from outside.
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/locate.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "store/sqlite/maintenance.h"

namespace waybill::cli {
namespace {

namespace fs = std::filesystem;
namespace sqlite = store::sqlite;

struct StoreOptions {
  std::string path, config, target;
  bool json = false;
};

// --path, else what the configuration says.
Result<fs::path> find_store(const StoreOptions& options) {
  if (!options.path.empty()) return fs::path(options.path);
  const auto config = load_config(options.config);
  if (!config) return std::unexpected(config.error());
  if (config->store.path.empty()) {
    return fail(ErrorCode::kInvalidInput,
                "the configuration has no store.path, so there are no jobs; --path names a store");
  }
  return config->store.path;
}

std::string bytes_text(std::uint64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

Outcome print(const std::string& text, ExitCode code = ExitCode::kDone) {
  Output output;
  output.write(text);
  if (Outcome finished = finish(output); !finished) return finished;
  return code;
}

Outcome run_check(const StoreOptions& options) {
  const Result<fs::path> path = find_store(options);
  if (!path) return std::unexpected(path.error());
  ProgressLine line;
  const Result<sqlite::StoreCheck> check = sqlite::check_store(*path, line.reporter());
  line.clear();
  if (!check) return std::unexpected(check.error());
  std::string text;
  if (options.json) {
    JsonWriter json(text);
    json.begin_object()
        .key("path")
        .string(path->string())
        .key("jobs")
        .integer(static_cast<std::int64_t>(check->jobs));
    json.key("large_bodies").integer(static_cast<std::int64_t>(check->blobs)).key("problems").begin_array();
    for (const std::string& problem : check->problems) json.string(problem);
    json.end_array().end_object();
    text += '\n';
  } else if (check->problems.empty()) {
    text = fmt::format("{}: {}, {} jobs, {} large bodies\n", path->string(),
                       paint(Style::kGreen, "no problems"), check->jobs, check->blobs);
  } else {
    for (const std::string& problem : check->problems) {
      text += fmt::format("{}: {} {}\n", path->string(), paint(Style::kRed, "problem:"), problem);
    }
  }
  return print(text, check->problems.empty() ? ExitCode::kDone : ExitCode::kNo);
}

Outcome run_backup(const StoreOptions& options) {
  const Result<fs::path> path = find_store(options);
  if (!path) return std::unexpected(path.error());
  ProgressLine line;
  const Result<sqlite::StoreBackup> backup = sqlite::back_up_store(*path, options.target, line.reporter());
  line.clear();
  if (!backup) return std::unexpected(backup.error());
  std::string text;
  if (options.json) {
    JsonWriter json(text);
    json.begin_object().key("path").string(path->string()).key("target").string(options.target);
    json.key("bytes").integer(static_cast<std::int64_t>(backup->bytes));
    json.key("large_bodies").integer(static_cast<std::int64_t>(backup->blobs));
    json.key("gone").integer(static_cast<std::int64_t>(backup->gone)).end_object();
    text += '\n';
  } else {
    text = fmt::format("{}: {}, {} large bodies\n", options.target, bytes_text(backup->bytes), backup->blobs);
    if (backup->gone != 0) {
      print_note(fmt::format("{} large bodies are missing: their jobs were removed while they were copied",
                             backup->gone));
    }
  }
  return print(text);
}

Outcome run_vacuum(const StoreOptions& options) {
  const Result<fs::path> path = find_store(options);
  if (!path) return std::unexpected(path.error());
  ProgressLine line;
  const Result<sqlite::StoreVacuum> vacuum = sqlite::vacuum_store(*path, line.reporter());
  line.clear();
  if (!vacuum) return std::unexpected(vacuum.error());
  std::string text;
  if (options.json) {
    JsonWriter json(text);
    json.begin_object().key("path").string(path->string());
    json.key("bytes_before").integer(static_cast<std::int64_t>(vacuum->bytes_before));
    json.key("bytes_after").integer(static_cast<std::int64_t>(vacuum->bytes_after));
    json.key("files_removed").integer(static_cast<std::int64_t>(vacuum->files_removed)).end_object();
    text += '\n';
  } else {
    text =
        fmt::format("{}: {} → {}, {} files removed that no job names\n", path->string(),
                    bytes_text(vacuum->bytes_before), bytes_text(vacuum->bytes_after), vacuum->files_removed);
  }
  return print(text);
}

// Jobs of a queue by state, of all callers.
std::map<std::string, std::map<store::State, std::uint64_t>> by_queue(const sqlite::StoreOverview& overview) {
  std::map<std::string, std::map<store::State, std::uint64_t>> queues;
  for (const store::QueueState& queue : overview.queues) queues[queue.name];
  for (const store::Depth& depth : overview.depths) queues[depth.queue][depth.state] += depth.jobs;
  return queues;
}

void write_stats_json(std::string& text, const fs::path& path, const sqlite::StoreOverview& overview) {
  const auto integer = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  const store::StoreStats& stats = overview.stats;
  JsonWriter json(text);
  json.begin_object().key("path").string(path.string()).key("jobs").integer(integer(stats.jobs));
  json.key("idempotency_keys").integer(integer(stats.keys)).key("results").integer(integer(stats.results));
  json.key("pending_deliveries").integer(integer(stats.deliveries));
  json.key("dead_deliveries").integer(integer(stats.dead_deliveries));
  json.key("file_bytes")
      .integer(integer(stats.file_bytes))
      .key("free_bytes")
      .integer(integer(stats.free_bytes));
  json.key("log_bytes").integer(integer(stats.log_bytes)).key("large_bodies").integer(integer(stats.blobs));
  json.key("large_body_bytes").integer(integer(stats.blob_bytes)).key("queues").begin_array();
  const auto queues = by_queue(overview);
  for (const store::QueueState& queue : overview.queues) {
    json.begin_object().key("name").string(queue.name).key("paused").boolean(queue.paused);
    json.key("oldest_queued_at");
    if (queue.oldest == store::kNever) {
      json.null();
    } else {
      json.number(static_cast<double>(queue.oldest) / 1e6, 16);
    }
    json.key("jobs").begin_object();
    for (const auto& [state, jobs] : queues.at(queue.name)) {
      json.key(to_string(state)).integer(integer(jobs));
    }
    json.end_object().end_object();
  }
  json.end_array().end_object();
  text += '\n';
}

std::string stats_text(const fs::path& path, const sqlite::StoreOverview& overview) {
  const store::StoreStats& stats = overview.stats;
  std::string text = fmt::format(
      "{}: {} jobs, {} with an answer; {} idempotency keys, {} deliveries pending, {} dead\n"
      "  {} of which {} free, log {}; {} large bodies, {}\n",
      path.string(), stats.jobs, stats.results, stats.keys, stats.deliveries, stats.dead_deliveries,
      bytes_text(stats.file_bytes), bytes_text(stats.free_bytes), bytes_text(stats.log_bytes), stats.blobs,
      bytes_text(stats.blob_bytes));
  std::vector<Table::Column> columns = {{"  queue", Table::Align::kLeft}};
  for (std::size_t i = 0; i < store::kStates; ++i) {
    columns.push_back({std::string(to_string(static_cast<store::State>(i))), Table::Align::kRight});
  }
  Table table(std::move(columns));
  const auto queues = by_queue(overview);
  for (const store::QueueState& queue : overview.queues) {
    std::vector<std::string> cells = {fmt::format("  {}{}", queue.name, queue.paused ? " (paused)" : "")};
    const auto& jobs = queues.at(queue.name);
    for (std::size_t i = 0; i < store::kStates; ++i) {
      const auto count = jobs.find(static_cast<store::State>(i));
      cells.push_back(std::to_string(count == jobs.end() ? 0 : count->second));
    }
    table.add_row(std::move(cells));
  }
  return table.empty() ? text : text + table.text();
}

Outcome run_stats(const StoreOptions& options) {
  const Result<fs::path> path = find_store(options);
  if (!path) return std::unexpected(path.error());
  const Result<sqlite::StoreOverview> overview = sqlite::look_at_store(*path);
  if (!overview) return std::unexpected(overview.error());
  std::string text;
  if (options.json) {
    write_stats_json(text, *path, *overview);
  } else {
    text = stats_text(*path, *overview);
  }
  return print(text);
}

void add_one(CLI::App& parent, CommandText text, Outcome (*run)(const StoreOptions&),
             bool has_target = false) {
  auto options = std::make_shared<StoreOptions>();
  CLI::App& command = add_command(parent, std::move(text));
  if (has_target) {
    add_file(command, "target", options->target, "The copy to be made; its large bodies come to TARGET-blobs")
        ->required();
  }
  add_file(command, "--path", options->path, "The store; else what the configuration says (store.path)");
  add_config_option(command, options->config);
  add_json_flag(command, options->json, "One JSON object");
  set_action(command, [options, run] { return run(*options); });
}

}  // namespace

void add_store(CLI::App& app) {
  CLI::App& command =
      add_command(app, {.name = "store",
                        .summary = "check, copy and look at the store of jobs",
                        .details = "docs/store.md tells what is in it, and what to do when a disk fails.",
                        .examples = "waybill store stats\n"
                                    "waybill store check --path jobs.db\n"
                                    "waybill store backup /backup/jobs-monday.db"});
  command.require_subcommand(1);
  add_one(
      command,
      {.name = "check",
       .summary = "tell everything that is wrong with a store",
       .details = "Reads all of it: the structure of the file, whether its tables agree with each other, its "
                  "counters against a recount, and that each large body is there and whole. Ends with 0 when "
                  "there is no problem and with 1 when there is. The server may go on meanwhile.",
       .examples = "waybill store check\n"
                   "waybill store check --json --path jobs.db | jq -r '.problems[]'"},
      run_check);
  add_one(
      command,
      {.name = "backup",
       .summary = "copy a store while it is used",
       .details =
           "The copy is a store as it was at one moment, and is there only when it is whole and on disk. To "
           "go back to it, stop the server and put it, and its folder of large bodies, where store.path "
           "says. While it is made the store's log cannot be shortened.",
       .examples = "waybill store backup /backup/jobs-monday.db\n"
                   "waybill store backup --path jobs.db copy.db"},
      run_backup, true);
  add_one(
      command,
      {.name = "vacuum",
       .summary = "give free space back to the file system",
       .details =
           "Writes the database anew without what is free in it, and removes files of large bodies that no "
           "job names. The server must be stopped. Needs as much room as the database has.",
       .examples = "waybill store vacuum"},
      run_vacuum);
  add_one(command,
          {.name = "stats",
           .summary = "show how many jobs there are, and how much room they take",
           .details = "From counters, whatever the number of jobs. The server may go on meanwhile.",
           .examples = "waybill store stats\n"
                       "waybill store stats --json | jq '.queues[].jobs.queued'"},
          run_stats);
}

}  // namespace waybill::cli
