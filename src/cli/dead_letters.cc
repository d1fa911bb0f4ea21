// `waybill dead-letters`: jobs of a running server that used up their receives.
#include <array>
#include <cstdio>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "base/json_writer.h"
#include "cli/api_client.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job_options.h"
#include "cli/job_text.h"
#include "cli/output.h"
#include "cli/terminal.h"

namespace waybill::cli {
namespace {

constexpr std::int64_t kMostRedriven = 1000;  // unless --max says otherwise; the API's own default

Outcome run_list(const ServerOptions& server, const ListOptions& options) {
  const double now = unix_now();
  Table table({{.title = "id"},
               {.title = "queue"},
               {.title = "died", .align = Table::Align::kRight},
               {.title = "receives", .align = Table::Align::kRight},
               {.title = "last error"}});
  // The errors take what the other columns leave of a terminal.
  constexpr std::size_t kOthers = 80, kLeast = 40;
  const std::size_t width = is_terminal(Stream::kOut)
                                ? std::max(terminal_width(Stream::kOut), kOthers + kLeast) - kOthers
                                : std::string::npos;
  return print_list(server, "/v1/dead-letters", options, std::move(table), [=](const JobText& job) {
    const boost::json::object& object = job.object();
    return std::vector<std::string>{
        job.id(), text_of(object, "queue"), relative_time(number_of(object, "finished_at"), now),
        fmt::format("{}", number_of(object, "receives")), fit_width(job.error(), width)};
  });
}

struct RedriveOptions {
  std::vector<std::string> ids;
  std::string queue, error_code;
  std::optional<std::int64_t> max;
  std::optional<double> rate;
  bool dry_run = false, yes = false;
};

ApiRequest redrive_request(const RedriveOptions& options, bool dry_run) {
  ApiRequest request = {.method = "POST", .path = "/v1/dead-letters/redrive", .body = {}, .headers = {}};
  JsonWriter json(request.body);
  json.begin_object();
  if (!options.queue.empty()) json.key("queue").string(options.queue);
  if (!options.error_code.empty()) json.key("error_code").string(options.error_code);
  if (!options.ids.empty()) {
    json.key("ids").begin_array();
    for (const std::string& id : options.ids) json.string(id);
    json.end_array();
  }
  json.key("max").integer(options.max.value_or(kMostRedriven));
  if (options.rate && !dry_run) {
    json.key("rate_per_second").number(*options.rate);
    request.timeout = std::chrono::hours(24 * 30);  // it answers when it is done
  }
  json.key("dry_run").boolean(dry_run).end_object();
  return request;
}

// What a person says to the number of jobs.
bool is_confirmed(double jobs) {
  fmt::print(stderr, "waybill: redrive {:.0f} jobs? [y/N] ", jobs);
  std::fflush(stderr);
  std::array<char, 16> answer{};
  if (std::fgets(answer.data(), static_cast<int>(answer.size()), stdin) == nullptr) return false;
  return answer[0] == 'y' || answer[0] == 'Y';
}

Outcome run_redrive(const ServerOptions& server, const RedriveOptions& options) {
  const Result<std::unique_ptr<ApiClient>> client = ApiClient::make(server);
  if (!client) return std::unexpected(client.error());
  const bool ask =
      !options.dry_run && !options.yes && ::isatty(STDIN_FILENO) == 1 && is_terminal(Stream::kErr);
  if (ask) {
    const Result<std::string> body = (*client)->ask(redrive_request(options, true));
    if (!body) return std::unexpected(body.error());
    const Result<boost::json::object> found = parse_object(*body);
    if (!found) return std::unexpected(found.error());
    const double count = number_of(*found, "count");
    if (count > 0 && !is_confirmed(count)) return ExitCode::kNo;
  }
  const Result<std::string> body = (*client)->ask(redrive_request(options, options.dry_run));
  if (!body) return std::unexpected(body.error());
  const Result<boost::json::object> done = parse_object(*body);
  if (!done) return std::unexpected(done.error());
  Output output;
  const double count = number_of(*done, "count");
  if (server.json) {
    output.write(json_line(*body));
  } else if (const boost::json::value* ids = done->if_contains("ids"); ids != nullptr && ids->is_array()) {
    for (const boost::json::value& id : ids->get_array()) {
      if (id.is_string()) output.write(std::string(id.get_string()) + "\n");
    }
  }
  if (Outcome finished = finish(output); !finished) return finished;
  if (const boost::json::value* refused = done->if_contains("refused");
      refused != nullptr && refused->is_array() && !server.json) {
    print_note(fmt::format("{} stay: their queues are not configured", refused->get_array().size()));
  }
  if (!server.json) {
    print_note(fmt::format("{:.0f} jobs {} redriven{}", count, options.dry_run ? "would be" : "were",
                           count >= static_cast<double>(options.max.value_or(kMostRedriven))
                               ? "; there may be more (--max)"
                               : ""));
  }
  return ExitCode::kDone;
}

void add_list(CLI::App& parent, const std::shared_ptr<const ServerOptions>& server) {
  auto options = std::make_shared<ListOptions>();
  CLI::App& command = add_command(
      parent, {.name = "list",
               .summary = "list dead letters and why they died",
               .details = "With --json all that went wrong with each of them (attempts).",
               .examples = "waybill dead-letters list --queue nightly\n"
                           "waybill dead-letters list --all --json | jq -r .error.code | sort | uniq -c"});
  add_list_options(command, *options);
  set_action(command, [server, options] { return run_list(*server, *options); });
}

void add_redrive(CLI::App& parent, const std::shared_ptr<const ServerOptions>& server) {
  auto options = std::make_shared<RedriveOptions>();
  CLI::App& command = add_command(
      parent,
      {.name = "redrive",
       .summary = "give dead letters all their receives again",
       .details =
           "All of them, unless something says which; needs an admin's key. On a terminal it asks first. "
           "Prints the ids, one a line. With --rate it ends when the last of them is on its way, and "
           "goes no further when it is interrupted.",
       .examples = "waybill dead-letters redrive --error-code upstream_timeout --dry-run\n"
                   "waybill dead-letters redrive --queue nightly --max 500 --rate 10 --yes"});
  command.add_option("ID", options->ids, "Those jobs")->type_name("ID")->expected(0, -1);
  command.add_option("--queue", options->queue, "Those of this queue")->type_name("NAME");
  command.add_option("--error-code", options->error_code, "Those that died of this")->type_name("CODE");
  command.add_option("--max", options->max, "At most so many; else 1000")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{100'000}));
  command.add_option("--rate", options->rate, "No more than so many a second")
      ->type_name("N")
      ->check(CLI::Range(0.1, 100'000.0));
  command.add_flag("--dry-run", options->dry_run, "Only tell which it would be");
  command.add_flag("--yes", options->yes, "Do not ask");
  set_action(command, [server, options] { return run_redrive(*server, *options); });
}

}  // namespace

void add_dead_letters(CLI::App& app) {
  auto server = std::make_shared<ServerOptions>();
  CLI::App& command =
      add_command(app, {.name = "dead-letters",
                        .summary = "list and redrive the dead letters of a running server",
                        .details = "A dead letter is a job that used up its receives without an answer.",
                        .examples = "waybill dead-letters list\n"
                                    "waybill dead-letters redrive --dry-run"});
  command.require_subcommand(1);
  add_server_options(command, *server);
  add_list(command, server);
  add_redrive(command, server);
}

}  // namespace waybill::cli
