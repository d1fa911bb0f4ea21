// `waybill jobs submit`: requests become jobs.
#include <charconv>
#include <cstring>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/json_writer.h"
#include "cli/job_options.h"
#include "cli/job_requests.h"
#include "cli/job_text.h"
#include "cli/jobs_commands.h"
#include "cli/output.h"
#include "cli/terminal.h"

namespace waybill::cli {
namespace {

constexpr std::size_t kMostInCall = 1000;       // jobs; the server's default bound
constexpr std::size_t kBytesInCall = 4U << 20;  // about; a server takes 10 MB by default
constexpr std::size_t kMostPromptBytes = 64U << 20;

struct SubmitOptions {
  std::string prompt, model, request, queue, run_after, expires_in, webhook, idempotency_key;
  std::vector<std::string> metadata;
  std::optional<int> priority, max_receives;
  bool has_prompt = false, stream = false, wait = false;
};

std::string json_string(std::string_view text) {
  std::string json;
  JsonWriter(json).string(text);
  return json;
}

// A time, or one from now, as the API has it.
std::string json_time(const std::string& text) {
  double seconds = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, seconds);
  if (error == std::errc() && rest == end) return fmt::format("{:.3f}", seconds);  // of 1970
  if (const std::optional<double> later = parse_duration(text))
    return fmt::format("{:.3f}", unix_now() + *later);
  return json_string(text);
}

JobFields fields_of(const SubmitOptions& options) {
  JobFields fields;
  if (!options.queue.empty()) fields.emplace_back("queue", json_string(options.queue));
  if (options.priority) fields.emplace_back("priority", std::to_string(*options.priority));
  if (!options.run_after.empty()) fields.emplace_back("run_after", json_time(options.run_after));
  if (const std::optional<double> seconds = parse_duration(options.expires_in))
    fields.emplace_back("expires_in", fmt::format("{:.3f}", *seconds));
  if (options.max_receives) fields.emplace_back("max_receives", std::to_string(*options.max_receives));
  if (!options.webhook.empty()) fields.emplace_back("webhook", json_string(options.webhook));
  if (!options.metadata.empty()) {
    std::string json;
    JsonWriter writer(json);
    writer.begin_object();
    for (const std::string& pair : options.metadata) {
      const auto [name, value] = split_pair(pair);
      writer.key(name).string(value);
    }
    writer.end_object();
    fields.emplace_back("metadata", std::move(json));
  }
  return fields;
}

Result<std::string> read_prompt() {
  std::string text;
  for (;;) {
    char block[1U << 16];
    const ssize_t n = ::read(STDIN_FILENO, block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(ErrorCode::kIo, fmt::format("cannot read the prompt: {}", std::strerror(errno)));
    if (n == 0) break;
    text.append(block, static_cast<std::size_t>(n));
    if (text.size() > kMostPromptBytes) return fail(ErrorCode::kInvalidInput, "the prompt is too long");
  }
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  return text;
}

std::string chat_request(const SubmitOptions& options, std::string_view prompt) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().key("model").string(options.model).key("messages").begin_array();
  writer.begin_object().key("role").string("user").key("content").string(prompt).end_object().end_array();
  if (options.stream) writer.key("stream").boolean(true);
  writer.end_object();
  return json;
}

// A descriptor that is closed, unless it is stdin.
class InputFile {
 public:
  explicit InputFile(const std::string& path)
      : descriptor_(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~InputFile() {
    if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  [[nodiscard]] int get() const noexcept { return descriptor_; }

 private:
  const int descriptor_;
};

// The calls that make jobs of requests.
class Submission {
 public:
  Submission(ApiClient& client, const SubmitOptions& options, bool json)
      : client_(client), options_(options), fields_(fields_of(options)), json_(json) {}

  Status submit_prompt(std::string_view prompt) {
    waiting_.push_back({.line = 0, .json = chat_request(options_, prompt)});
    return submit_waiting();
  }

  Status submit_all(RequestReader& reader) {
    ProgressLine progress;
    for (;;) {
      if (waiting_.size() < most_) {
        if (Status read = reader.next(waiting_, most_, kBytesInCall); !read) return told(std::move(read));
      }
      if (waiting_.empty()) return {};
      name_ = reader.name();
      if (Status done = submit_waiting(); !done) return told(std::move(done));
      if (refused_ > 0) return {};
      if (is_terminal(Stream::kOut)) progress.clear();
      progress.update("submitting", reader.bytes_taken(), reader.bytes_total());
    }
  }

  [[nodiscard]] const std::vector<std::string>& ids() const noexcept { return ids_; }
  [[nodiscard]] std::size_t refused() const noexcept { return refused_; }

 private:
  // As many as go into one call.
  Status submit_waiting() {
    for (;;) {
      const std::size_t count = std::min(most_, waiting_.size());
      const ApiRequest request = call_for(count);
      const Result<ApiAnswer> answer = client_.send(request);
      if (answer && answer->status / 100 == 2) {
        patience_.met();
        patience_.advanced();
        return take(answer->body, count);
      }
      Error error = answer ? client_.error_of(request, *answer) : answer.error();
      const bool too_many = answer && (answer->status == 413 || error.field == "jobs");
      if (too_many && count > 1) {
        most_ = count / 2;
        continue;
      }
      // A call that was sent and has no answer may have made its jobs: again only with a key, which makes
      // them once.
      const bool is_sent = answer || error.field != kServerOption;
      const bool may_repeat = answer || !is_sent || !options_.idempotency_key.empty();
      if (!answer && is_sent) patience_.met();
      if (may_repeat && patience_.wait_after(error)) continue;
      if (!may_repeat) {
        error.message +=
            "; whether its jobs were accepted is not known: `waybill jobs list` shows them, and with "
            "--idempotency-key it could be sent again";
      }
      if (answer && (answer->status == 413 || !error.field.empty())) locate(error);
      return std::unexpected(std::move(error));
    }
  }

  [[nodiscard]] ApiRequest call_for(std::size_t count) const {
    ApiRequest request = {.method = "POST", .path = "/v1/jobs", .body = {}, .headers = {}};
    if (count == 1) {
      request.body = make_job(waiting_.front().json, fields_);
    } else {
      request.body = R"({"jobs":[)";
      for (std::size_t i = 0; i < count; ++i) {
        if (i > 0) request.body += ",";
        request.body += make_job(waiting_[i].json, fields_);
      }
      request.body += "]}";
    }
    if (!options_.idempotency_key.empty()) {
      request.headers.emplace_back(
          "Idempotency-Key",
          sent_ == 0 ? options_.idempotency_key : fmt::format("{}/{}", options_.idempotency_key, sent_));
    }
    return request;
  }

  Status take(const std::string& body, std::size_t count) {
    std::vector<std::string_view> made = {body};
    Result<ApiList> list;
    if (count > 1) {
      list = parse_list(body);
      if (!list) return std::unexpected(list.error());
      made = list->items;
    }
    Output output;
    for (std::size_t i = 0; i < made.size() && i < count; ++i) {
      const Result<boost::json::object> job = parse_object(made[i]);
      if (!job) return std::unexpected(job.error());
      const std::string id = text_of(*job, "id");
      if (id.empty()) {
        tell_refused(*job, waiting_[i].line);
      } else {
        ids_.push_back(id);
        if (!options_.wait) output.write(json_ ? json_line(made[i]) : id + "\n");
      }
    }
    sent_ += count;
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
    return output.flush();
  }

  void tell_refused(const boost::json::object& job, std::size_t line) {
    constexpr std::size_t kTold = 5;
    if (++refused_ > kTold) return;
    const boost::json::object* error = object_of(job, "error");
    print_error(fmt::format("{}:{}: {}{}", name_, line,
                            error == nullptr ? "it was not accepted" : text_of(*error, "message"),
                            refused_ == kTold ? " (what follows is not told)" : ""));
  }

  // "jobs[3].request.model" is line so and so of the file.
  void locate(Error& error) const {
    constexpr std::string_view kStart = "jobs[";
    if (name_.empty() || waiting_.empty()) return;
    std::size_t index = 0;
    std::string field = error.field;
    if (field.starts_with(kStart)) {
      const char* end = field.data() + field.size();
      const auto read = std::from_chars(field.data() + kStart.size(), end, index);
      if (read.ec != std::errc() || index >= waiting_.size()) return;
      field.erase(0, std::min(static_cast<std::size_t>(read.ptr - field.data()) + 2, field.size()));
      if (const std::size_t at = error.message.rfind(fmt::format(" ({})", error.field));
          at != std::string::npos) {
        error.message.resize(at);
        if (!field.empty() && error.message.find(field) == std::string::npos)
          error.message += fmt::format(" ({})", field);
      }
    }
    error.message = fmt::format("{}:{}: {}", name_, waiting_[index].line, error.message);
  }

  // What was done before it went wrong.
  Status told(Status failed) const {
    if (!ids_.empty()) print_note(fmt::format("{} jobs were accepted before that", ids_.size()));
    return failed;
  }

  ApiClient& client_;
  const SubmitOptions& options_;
  const JobFields fields_;
  const bool json_;
  std::string name_;  // of the file
  std::vector<RequestLine> waiting_;
  std::vector<std::string> ids_;
  std::size_t most_ = kMostInCall, sent_ = 0, refused_ = 0;
  Patience patience_;
};

Outcome usage(std::string_view message) {
  print_error(message);
  return ExitCode::kUsage;
}

Outcome run_submit(const ServerOptions& server, const SubmitOptions& options) {
  const bool has_file = !options.request.empty();
  if (has_file && options.has_prompt) return usage("a prompt or --request, not both");
  if (!has_file && options.model.empty()) return usage("--model says which model is to answer");
  if (has_file && (!options.model.empty() || options.stream))
    return usage("with --request, the model and whether it streams are in the request");
  const Result<std::unique_ptr<ApiClient>> client = ApiClient::make(server);
  if (!client) return std::unexpected(client.error());
  Submission submission(**client, options, server.json);
  if (has_file) {
    const InputFile file(options.request);
    if (file.get() < 0) {
      return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                  fmt::format("{}: {}", options.request, std::strerror(errno)));
    }
    RequestReader reader(file.get(), options.request == "-" ? "stdin" : options.request);
    if (const Status done = submission.submit_all(reader); !done) return std::unexpected(done.error());
    if (submission.ids().empty() && submission.refused() == 0)
      return fail(ErrorCode::kInvalidInput, fmt::format("{} has no request in it", reader.name()));
  } else {
    const Result<std::string> prompt =
        options.has_prompt ? Result<std::string>(options.prompt) : read_prompt();
    if (!prompt) return std::unexpected(prompt.error());
    if (const Status done = submission.submit_prompt(*prompt); !done) return std::unexpected(done.error());
  }
  ExitCode code = submission.refused() > 0 ? ExitCode::kNo : ExitCode::kDone;
  if (!options.wait) return code;
  if (is_terminal(Stream::kErr)) {
    print_note(submission.ids().size() == 1 ? fmt::format("it is job {}", submission.ids().front())
                                            : fmt::format("they are {} jobs", submission.ids().size()));
  }
  const Outcome waited = wait_for_jobs(**client, submission.ids(), std::nullopt, server.json);
  return waited && *waited == ExitCode::kDone ? Outcome(code) : waited;
}

}  // namespace

void add_jobs_submit(CLI::App& parent, const SharedServer& server) {
  auto options = std::make_shared<SubmitOptions>();
  CLI::App& command = add_command(
      parent,
      {.name = "submit",
       .summary = "make jobs of requests",
       .details =
           "The request is a prompt, or what a call to the API would have as its body, or a file of those, "
           "one a line (JSON Lines): then they are sent up to 1000 at a time. A line that has a \"request\" "
           "is "
           "a job as the API has it; what it does not say itself, the options say. Prints the id of each "
           "job, "
           "one a line, when it is on the server's disk.",
       .examples = "waybill jobs submit --model small \"What is a waybill?\"\n"
                   "waybill jobs submit --model small --wait < question.txt\n"
                   "waybill jobs submit --request requests.jsonl --queue nightly --metadata run=7 > ids.txt\n"
                   "# safe to repeat: the second time it prints the ids of the first\n"
                   "waybill jobs submit --request requests.jsonl --idempotency-key run-7"});
  auto* prompt = command.add_option("PROMPT", options->prompt,
                                    "What the model is asked; standard input if it is not given");
  prompt->type_name("PROMPT")->each([options](const std::string& /*text*/) { options->has_prompt = true; });
  command.add_option("--model", options->model, "The model that is to answer the prompt")->type_name("NAME");
  command.add_flag("--stream", options->stream,
                   "The model streams its answer, so that tail shows it as it comes");
  add_file(command, "--request", options->request,
           "Requests instead of a prompt, as JSON; - is standard input");
  command.add_option("--queue", options->queue, "The queue; else \"default\"")->type_name("NAME");
  command.add_option("--priority", options->priority, "0 to 9; a higher one begins first")
      ->type_name("N")
      ->check(CLI::Range(0, 9));
  command
      .add_option("--run-after", options->run_after,
                  "Not before: 2027-01-01T00:00:00Z, seconds of 1970, or a duration from now (2h)")
      ->type_name("TIME");
  add_duration(command, "--expires-in", options->expires_in, "It expires if it has not ended by then: 12h");
  command.add_option("--max-receives", options->max_receives, "Attempts, after which it is dead")
      ->type_name("N")
      ->check(CLI::Range(1, 100));
  command.add_option("--webhook", options->webhook, "Is told when the job has ended")->type_name("URL");
  add_metadata(command, options->metadata, "Kept with the job; lists are filtered by it");
  command
      .add_option("--idempotency-key", options->idempotency_key,
                  "Jobs under a key are made once, however often they are submitted")
      ->type_name("KEY")
      ->check(CLI::Validator(
          [](const std::string& key) {
            const bool good = !key.empty() && key.size() <= 200 &&
                              std::ranges::all_of(key, [](char c) { return c > ' ' && c < 0x7F; });
            return good ? std::string() : std::string("a key has up to 200 printable ASCII characters");
          },
          "", "key"));
  command.add_flag("--wait", options->wait,
                   "Wait until it has ended and print the answer, as jobs wait does");
  set_action(command, [server, options] { return run_submit(*server, *options); });
}

}  // namespace waybill::cli
