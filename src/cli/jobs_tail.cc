// `waybill jobs tail`: a job as it goes.
#include <chrono>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/json_writer.h"
#include "cli/job_options.h"
#include "cli/job_text.h"
#include "cli/jobs_commands.h"
#include "cli/output.h"
#include "upstream/json_scanner.h"
#include "upstream/sse_reader.h"

namespace waybill::cli {
namespace {

constexpr Duration kLongestSilence = std::chrono::seconds(45);  // the server says something every 15

// The first `id` line: the server's own; those that follow a model's stream may have.
std::string_view id_of(std::string_view event) {
  constexpr std::string_view kId = "id: ";
  if (!event.starts_with(kId)) return {};
  return event.substr(kId.size(), event.find_first_of("\r\n") - kId.size());
}

class Tail {
 public:
  Tail(ApiClient& client, std::string id, bool json) : client_(client), id_(std::move(id)), json_(json) {}

  Outcome run() {
    for (Patience patience; !is_over_;) {
      Status status = follow(patience);
      if (is_over_ || output_error_) break;
      if (status) {  // the stream ended before the job: the server stops
        status = fail(ErrorCode::kUpstreamFailed,
                      fmt::format("{} ends its streams before the job has ended", client_.url()));
      }
      if (!patience.wait_after(status.error())) return std::unexpected(status.error());
    }
    if (output_error_) return std::unexpected(*output_error_);
    return finish_job();
  }

 private:
  // One connection, until its end.
  Status follow(Patience& patience) {
    ApiRequest request = {.method = "GET", .path = path_of_job(id_, "/events"), .body = {}, .headers = {}};
    if (!last_.empty()) request.headers.emplace_back("Last-Event-ID", last_);
    const Result<unsigned> begun = client_.begin_stream(request);
    if (!begun) return std::unexpected(begun.error());
    patience.met();
    upstream::SseReader reader;
    for (;;) {
      const Result<std::string_view> piece = client_.next_piece(kLongestSilence);
      if (!piece) return std::unexpected(piece.error());
      if (piece->empty()) return {};
      reader.append(*piece);
      while (const auto event = reader.next()) {
        if (!event->has_data) continue;
        patience.advanced();
        if (const std::string_view id = id_of(event->raw); !id.empty()) last_ = id;
        take(*event);
      }
      if (const Status written = output_.flush(); !written) {
        output_error_ = written.error();
        return {};
      }
      if (is_over_) return {};
    }
  }

  void take(const upstream::SseEvent& event) {
    if (json_) write_event(event);
    if (event.name == "status") {
      take_status(event.data);
    } else if (event.name == "restart") {
      if (!json_) end_line();
      print_note("the attempt broke off; what follows is another one's");
      has_text_ = false;
    } else if (!json_) {
      const std::string text = text_of_chunk(event.data);
      if (text.empty()) return;
      output_.write(text);
      has_text_ = true;
      at_line_start_ = text.ends_with('\n');
    }
  }

  void take_status(std::string_view data) {
    Result<JobText> job = JobText::parse(data);
    if (!job) return;
    is_over_ = last_ == "end";
    if (!json_ && !is_over_ && job->status() != status_) {  // not the same again, after a connection broke
      end_line();
      (void)output_.flush();
      status_ = job->status();
      print_note(fmt::format("the job is {}", status_));
    }
    job_ = std::move(*job);
  }

  void write_event(const upstream::SseEvent& event) {
    std::string line;
    JsonWriter json(line);
    json.begin_object().key("event").string(event.name.empty() ? "message" : event.name);
    json.key("id").string(last_).key("data");
    upstream::JsonScanner scanner(event.data);
    if (!scanner.skip().empty() && scanner.at_end()) {
      json.raw(event.data);
    } else {
      json.string(event.data);
    }
    json.end_object();
    output_.write(json_line(line));
  }

  void end_line() {
    if (!at_line_start_) output_.write("\n");
    at_line_start_ = true;
  }

  Outcome finish_job() {
    if (!json_) {
      end_line();
      if (job_ && job_->is_completed() && !has_text_) {  // it did not stream
        const Result<std::string> body =
            client_.ask({.method = "GET", .path = path_of_job(id_), .body = {}, .headers = {}});
        if (!body) return std::unexpected(body.error());
        const Result<JobText> job = JobText::parse(*body);
        if (!job) return std::unexpected(job.error());
        const std::string answer = job->answer();
        output_.write(answer);
        at_line_start_ = answer.empty() || answer.ends_with('\n');
        end_line();
      }
    }
    if (Outcome finished = finish(output_); !finished) return finished;
    if (job_ && job_->is_completed()) return ExitCode::kDone;
    if (job_) {
      const std::string why = job_->error();
      print_error(fmt::format("job {} is {}{}{}", id_, job_->status(), why.empty() ? "" : ": ", why));
    }
    return ExitCode::kNo;
  }

  ApiClient& client_;
  const std::string id_;
  const bool json_;
  Output output_;
  std::optional<Error> output_error_;
  std::string last_;    // the id of the last event
  std::string status_;  // that was told last
  std::optional<JobText> job_;
  bool is_over_ = false, has_text_ = false, at_line_start_ = true;
};

Outcome run_tail(const ServerOptions& server, const std::string& id) {
  const Result<std::unique_ptr<ApiClient>> client = ApiClient::make(server);
  if (!client) return std::unexpected(client.error());
  return Tail(**client, id, server.json).run();
}

}  // namespace

void add_jobs_tail(CLI::App& parent, const SharedServer& server) {
  auto id = std::make_shared<std::string>();
  CLI::App& command = add_command(
      parent,
      {.name = "tail",
       .summary = "print what a job's model says as it says it",
       .details = "From the beginning, whenever it is called; of a job that does not stream its answer, when "
                  "it is there. What becomes of the job is told on stderr. A connection that breaks is made "
                  "anew and goes on where it was. With --json an object for each event. Ends with 0 when the "
                  "job is completed, else with 1.",
       .examples = "waybill jobs tail 01983f2e-5a00-7000-8000-000000000001\n"
                   "waybill jobs submit --stream --model small \"a long story\" | xargs waybill jobs tail"});
  command.add_option("ID", *id, "The job")->type_name("ID")->required();
  set_action(command, [server, id] { return run_tail(*server, *id); });
}

}  // namespace waybill::cli
