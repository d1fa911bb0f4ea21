// `waybill queues`: the queues of a running server.
#include <array>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

#include "cli/api_client.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job_text.h"
#include "cli/output.h"
#include "cli/terminal.h"

namespace waybill::cli {
namespace {

constexpr std::array<std::string_view, 9> kStates = {"queued", "scheduled", "running", "held", "completed",
                                                     "failed", "cancelled", "expired", "dead"};

std::string count_text(const boost::json::object& depth, std::string_view state) {
  const double count = number_of(depth, state);
  if (count == 0) return paint(Style::kDim, "0");
  std::string text = fmt::format("{:.0f}", count);
  if (state == "dead") return paint(Style::kRed, text);
  return state == "held" ? paint(Style::kYellow, text) : text;
}

std::string queues_text(const std::vector<boost::json::object>& queues) {
  std::vector<Table::Column> columns = {{.title = "queue"}, {.title = "workers"}};
  for (const std::string_view state : kStates)
    columns.push_back({.title = std::string(state), .align = Table::Align::kRight});
  columns.push_back({.title = "oldest", .align = Table::Align::kRight});
  columns.push_back({.title = ""});
  Table table(std::move(columns));
  for (const boost::json::object& queue : queues) {
    const std::string workers = text_of(queue, "workers");  // empty: the queue is not configured
    std::vector<std::string> cells = {
        text_of(queue, "name"),
        workers == "server" ? fmt::format("{:.0f}", number_of(queue, "concurrency")) : workers};
    const boost::json::object none;
    const boost::json::object* depth = object_of(queue, "depth");
    for (const std::string_view state : kStates)
      cells.push_back(count_text(depth == nullptr ? none : *depth, state));
    const double oldest = number_of(queue, "oldest_age");
    cells.push_back(oldest > 0 ? rough_duration(oldest) : "");
    const boost::json::value* paused = queue.if_contains("paused");
    const bool is_paused = paused != nullptr && paused->is_bool() && paused->get_bool();
    cells.push_back(workers.empty() ? paint(Style::kRed, "not configured")
                    : is_paused     ? paint(Style::kYellow, "paused")
                                    : "");
    table.add_row(std::move(cells));
  }
  return table.text();
}

// Asks, and prints what the answer tells of one queue or of all.
Outcome show(const ServerOptions& server, const ApiRequest& request, bool is_list) {
  const Result<std::unique_ptr<ApiClient>> client = ApiClient::make(server);
  if (!client) return std::unexpected(client.error());
  const Result<std::string> body = (*client)->ask(request);
  if (!body) return std::unexpected(body.error());
  std::vector<std::string_view> items = {*body};
  if (is_list) {
    Result<ApiList> list = parse_list(*body);
    if (!list) return std::unexpected(list.error());
    items = std::move(list->items);
  }
  Output output;
  std::vector<boost::json::object> queues;
  for (const std::string_view item : items) {
    Result<boost::json::object> queue = parse_object(item);
    if (!queue) return std::unexpected(queue.error());
    queues.push_back(std::move(*queue));
    if (server.json) output.write(json_line(item));
  }
  if (!server.json) output.write(queues_text(queues));
  return finish(output);
}

Outcome run_list(const ServerOptions& server) {
  return show(server, {.method = "GET", .path = "/v1/queues", .body = {}, .headers = {}}, true);
}

void add_change(CLI::App& parent, const std::shared_ptr<const ServerOptions>& server, CommandText text) {
  auto name = std::make_shared<std::string>();
  const std::string verb = text.name;
  CLI::App& command = add_command(parent, std::move(text));
  command.add_option("NAME", *name, "The queue")->type_name("NAME")->required();
  set_action(command, [server, name, verb] {
    const std::string path = fmt::format("/v1/queues/{}/{}", percent_encoded(*name), verb);
    return show(*server, {.method = "POST", .path = path, .body = {}, .headers = {}}, false);
  });
}

}  // namespace

void add_queues(CLI::App& app) {
  auto server = std::make_shared<ServerOptions>();
  CLI::App& command = add_command(
      app,
      {.name = "queues",
       .summary = "show, pause and resume the queues of a running server",
       .details = "Jobs of each state, of the key or with an admin's key of all; how many the server works "
                  "on at a time (\"external\": others do), and how long the oldest has waited. Without a "
                  "command it is list.",
       .examples = "waybill queues\n"
                   "waybill queues pause nightly\n"
                   "waybill queues list --json | jq '.depth.queued'"});
  command.require_subcommand(0, 1);
  add_server_options(command, *server);
  CLI::App& list = add_command(command, {.name = "list",
                                         .summary = "show the queues",
                                         .details = {},
                                         .examples = "waybill queues list\n"
                                                     "waybill queues list --json"});
  set_action(list, [server] { return run_list(*server); });
  add_change(command, server,
             {.name = "pause",
              .summary = "begin no more jobs of a queue",
              .details = "It takes jobs still, and those that run go on. Needs an admin's key.",
              .examples = "waybill queues pause nightly"});
  add_change(command, server,
             {.name = "resume",
              .summary = "begin the jobs of a paused queue again",
              .details = "Needs an admin's key.",
              .examples = "waybill queues resume nightly"});
  set_action(command, [server, &command] {
    return command.get_subcommands().empty() ? run_list(*server) : Outcome(ExitCode::kDone);
  });
}

}  // namespace waybill::cli
