// `waybill jobs`: the jobs of a running server.
#include <functional>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/job_options.h"
#include "cli/job_text.h"
#include "cli/jobs_commands.h"
#include "cli/output.h"
#include "cli/terminal.h"

namespace waybill::cli {
namespace {

using SharedIds = std::shared_ptr<std::vector<std::string>>;

// Asks about one job after another and prints what `text` makes of the answers. What is wrong with one of
// them is told, and the others follow.
Outcome for_each_job(const ServerOptions& server, const std::vector<std::string>& named,
                     const std::function<ApiRequest(const std::string& id)>& request,
                     const std::function<std::string(const JobText& job, bool is_first)>& text) {
  const Result<std::vector<std::string>> ids = given_ids(named);
  if (!ids) return std::unexpected(ids.error());
  const Result<std::unique_ptr<ApiClient>> client = ApiClient::make(server);
  if (!client) return std::unexpected(client.error());
  Output output;
  ExitCode code = ExitCode::kDone;
  bool is_first = true;
  for (const std::string& id : *ids) {
    const Result<std::string> body = (*client)->ask(request(id));
    if (!body) {
      const ErrorCode what = body.error().code;
      if (what != ErrorCode::kNotFound && what != ErrorCode::kInvalidInput)
        return std::unexpected(body.error());
      if (const Status written = output.flush(); !written) return std::unexpected(written.error());
      print_error(body.error().message);
      code = exit_code_of(what);
      continue;
    }
    const Result<JobText> job = JobText::parse(*body);
    if (!job) return std::unexpected(job.error());
    output.write(server.json ? json_line(*body) : text(*job, is_first));
    is_first = false;
  }
  const Outcome finished = finish(output);
  return finished ? Outcome(code) : finished;
}

void add_get(CLI::App& parent, const SharedServer& server) {
  auto ids = std::make_shared<std::vector<std::string>>();
  CLI::App& command =
      add_command(parent, {.name = "get",
                           .summary = "show jobs, and their answers",
                           .details = "All that is known of each job now.",
                           .examples = "waybill jobs get 01983f2e-5a00-7000-8000-000000000001\n"
                                       "waybill jobs get --json < ids.txt | jq -r .status"});
  add_ids(command, *ids, "The jobs");
  set_action(command, [server, ids] {
    const double now = unix_now();
    return for_each_job(
        *server, *ids,
        [](const std::string& id) {
          return ApiRequest{.method = "GET", .path = path_of_job(id), .body = {}, .headers = {}};
        },
        [now](const JobText& job, bool is_first) { return (is_first ? "" : "\n") + job.details(now); });
  });
}

// cancel and retry: what a job is then.
void add_change(CLI::App& parent, const SharedServer& server, CommandText text) {
  auto ids = std::make_shared<std::vector<std::string>>();
  const std::string verb = "/" + text.name;
  CLI::App& command = add_command(parent, std::move(text));
  add_ids(command, *ids, "The jobs");
  set_action(command, [server, ids, verb] {
    return for_each_job(
        *server, *ids,
        [&verb](const std::string& id) {
          return ApiRequest{.method = "POST", .path = path_of_job(id, verb), .body = {}, .headers = {}};
        },
        [](const JobText& job, bool /*is_first*/) {
          return fmt::format("{} {}\n", job.id(), job.painted_status());
        });
  });
}

Outcome run_list(const ServerOptions& server, const ListOptions& options) {
  const double now = unix_now();
  Table table({{.title = "id"},
               {.title = "status"},
               {.title = "queue"},
               {.title = "receives", .align = Table::Align::kRight},
               {.title = "created", .align = Table::Align::kRight},
               {.title = "ended", .align = Table::Align::kRight},
               {.title = "error"}});
  return print_list(server, "/v1/jobs", options, std::move(table), [now](const JobText& job) {
    const boost::json::object& object = job.object();
    std::string status = job.painted_status();
    if (job.status() == "scheduled") status += ", " + relative_time(number_of(object, "run_after"), now);
    const boost::json::object* error = object_of(object, "error");
    return std::vector<std::string>{
        job.id(),
        std::move(status),
        text_of(object, "queue"),
        fmt::format("{} of {}", number_of(object, "receives"), number_of(object, "max_receives")),
        relative_time(number_of(object, "created_at"), now),
        relative_time(number_of(object, "finished_at"), now),
        error == nullptr ? std::string() : text_of(*error, "code")};
  });
}

void add_list(CLI::App& parent, const SharedServer& server) {
  auto options = std::make_shared<ListOptions>();
  CLI::App& command =
      add_command(parent, {.name = "list",
                           .summary = "list jobs, the latest first",
                           .details = "Those of the key; with an admin's key, or without keys, those of all.",
                           .examples = "waybill jobs list --status running\n"
                                       "waybill jobs list --queue nightly --metadata customer=7 --limit 100\n"
                                       "waybill jobs list --all --json | jq -r .id"});
  add_choice(
      command, "--status", options->status,
      {"queued", "scheduled", "running", "held", "completed", "failed", "cancelled", "expired", "dead"},
      "Those that are in this state");
  add_list_options(command, *options);
  set_action(command, [server, options] { return run_list(*server, *options); });
}

}  // namespace

void add_jobs(CLI::App& app) {
  auto server = std::make_shared<ServerOptions>();
  CLI::App& command = add_command(
      app, {.name = "jobs",
            .summary = "submit jobs to a running server, wait for them, look at them",
            .details = "A job is a call to a model that is made later, and that the server keeps on its disk "
                       "until then; docs/jobs.md tells what is promised.",
            .examples = "waybill jobs submit --model small \"What is a waybill?\"\n"
                        "waybill jobs list --status dead\n"
                        "WAYBILL_URL=https://llm.example.com waybill jobs get < ids.txt"});
  command.require_subcommand(1);
  add_server_options(command, *server);
  add_jobs_submit(command, server);
  add_get(command, server);
  add_jobs_wait(command, server);
  add_jobs_tail(command, server);
  add_list(command, server);
  add_change(
      command, server,
      {.name = "cancel",
       .summary = "take jobs back",
       .details = "A job that is running ends at once. One that has ended stays as it is.",
       .examples = "waybill jobs cancel 01983f2e-5a00-7000-8000-000000000001\n"
                   "waybill jobs list --status queued --all --json | jq -r .id | waybill jobs cancel"});
  add_change(command, server,
             {.name = "retry",
              .summary = "try jobs again that ended without an answer, or are held",
              .details = "They have all their receives again.",
              .examples = "waybill jobs retry 01983f2e-5a00-7000-8000-000000000001\n"
                          "waybill jobs list --status held --all --json | jq -r .id | waybill jobs retry"});
}

}  // namespace waybill::cli
