// `waybill jobs wait`, and what `submit --wait` does.
#include <algorithm>
#include <chrono>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/job_options.h"
#include "cli/job_text.h"
#include "cli/jobs_commands.h"
#include "cli/output.h"
#include "cli/terminal.h"

namespace waybill::cli {
namespace {

constexpr double kPoll = 30;  // seconds that the server may take to answer

struct WaitOptions {
  std::vector<std::string> ids;
  std::string timeout;
};

// Until it has ended, or nothing comes of it by itself, or the time has passed.
Result<std::string> wait_for_one(ApiClient& client, const std::string& id, TimePoint until,
                                 Patience& patience) {
  for (;;) {
    const double left = std::chrono::duration<double>(until - std::chrono::steady_clock::now()).count();
    const double poll = std::clamp(left, 0.0, kPoll);
    const ApiRequest request = {.method = "GET",
                                .path = path_of_job(id, fmt::format("?wait={:.3f}", poll)),
                                .body = {},
                                .headers = {}};
    Result<std::string> body = client.ask(request);
    if (!body) {
      if (left <= 0 || !patience.wait_after(body.error())) return body;
      continue;
    }
    patience.met();
    patience.advanced();
    const Result<JobText> job = JobText::parse(*body);
    if (!job) return std::unexpected(job.error());
    if (job->is_over() || left <= poll) return body;
  }
}

std::string text_of(const JobText& job, bool is_one_of_many) {
  std::string text;
  if (is_one_of_many)
    text = fmt::format("{} {} {}\n", paint(Style::kDim, "==>"), job.id(), job.painted_status());
  std::string answer = job.answer();
  if (!answer.empty() && !answer.ends_with('\n')) answer += '\n';
  return text + answer;
}

Outcome run_wait(const ServerOptions& server, const WaitOptions& options) {
  const Result<std::vector<std::string>> ids = given_ids(options.ids);
  if (!ids) return std::unexpected(ids.error());
  const Result<std::unique_ptr<ApiClient>> client = ApiClient::make(server);
  if (!client) return std::unexpected(client.error());
  return wait_for_jobs(**client, *ids, parse_duration(options.timeout), server.json);
}

}  // namespace

Outcome wait_for_jobs(ApiClient& client, const std::vector<std::string>& ids, std::optional<double> seconds,
                      bool json) {
  constexpr double kForEver = 1e9;
  const TimePoint until =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds.value_or(kForEver)));
  Output output;
  Patience patience;
  ProgressLine progress;
  ExitCode code = ExitCode::kDone;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    progress.update("waiting", i, ids.size());
    const Result<std::string> body = wait_for_one(client, ids[i], until, patience);
    if (!body) {
      if (body.error().code != ErrorCode::kNotFound) return std::unexpected(body.error());
      progress.clear();
      print_error(body.error().message);
      code = ExitCode::kNoInput;
      continue;
    }
    const Result<JobText> job = JobText::parse(*body);
    if (!job) return std::unexpected(job.error());
    if (is_terminal(Stream::kOut)) progress.clear();
    output.write(json ? json_line(*body) : text_of(*job, ids.size() > 1));
    if (const Status written = output.flush(); !written) return std::unexpected(written.error());
    if (job->is_completed()) continue;
    progress.clear();
    const std::string why = job->error();
    print_error(!job->is_over() ? fmt::format("job {} is {} still", ids[i], job->status())
                : why.empty()   ? fmt::format("job {} is {}", ids[i], job->status())
                                : fmt::format("job {} is {}: {}", ids[i], job->status(), why));
    if (code == ExitCode::kDone) code = ExitCode::kNo;
  }
  return code;
}

void add_jobs_wait(CLI::App& parent, const SharedServer& server) {
  auto options = std::make_shared<WaitOptions>();
  CLI::App& command = add_command(
      parent,
      {.name = "wait",
       .summary = "wait until jobs have ended and print their answers",
       .details =
           "Prints the text that the model answered with, or the answer as it is where it is no text; of "
           "several jobs in the order they were named, each after its id. Ends with 0 when all are "
           "completed, "
           "with 1 when one has failed, is held, or has not ended in time. A server that is started anew "
           "meanwhile is waited for.",
       .examples = "waybill jobs wait 01983f2e-5a00-7000-8000-000000000001\n"
                   "waybill jobs submit --request requests.jsonl | waybill jobs wait --json"});
  add_ids(command, options->ids, "The jobs");
  add_duration(command, "--timeout", options->timeout, "Wait no longer, for all of them together");
  set_action(command, [server, options] { return run_wait(*server, *options); });
}

}  // namespace waybill::cli
