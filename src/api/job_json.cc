#include "api/job_json.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "api/job_attributes.h"
#include "base/utf8.h"
#include "upstream/json_scanner.h"

namespace waybill::api {
namespace {

using store::State;

bool is_json(std::string_view text) {
  upstream::JsonScanner json(text);
  return !json.skip().empty() && json.at_end() && is_valid_utf8(text);
}

void write_error(JsonWriter& json, std::string_view code, std::string_view message) {
  json.begin_object().key("code").string(code).key("message").string(message).end_object();
}

// Why there is no answer that was asked for.
void write_error_of(JsonWriter& json, const store::Job& job, const store::JobResult* result) {
  switch (job.state) {
    case State::kFailed:
      write_error(json, "job_failed",
                  result == nullptr
                      ? "The answer is an error that will not become another by asking again; result has it."
                      : fmt::format("The answer is an error ({}) that will not become another by asking "
                                    "again; result has it.",
                                    result->status));
      return;
    case State::kCancelled:
      write_error(json, "job_cancelled", "The job was cancelled.");
      return;
    case State::kExpired:
      write_error(json, "job_expired", "The job's time (expires_in) passed before it was done.");
      return;
    case State::kDead:
    case State::kHeld:
    case State::kScheduled:
      if (!job.errors.empty()) {
        write_error(json, job.errors.back().code, job.errors.back().message);
      } else if (job.state == State::kDead) {
        write_error(json, "job_dead", "It was tried as often as it may be (max_receives).");
      } else {
        json.null();
      }
      return;
    case State::kQueued:
    case State::kRunning:
    case State::kCompleted:
      break;
  }
  json.null();
}

void write_attempt(JsonWriter& json, const store::AttemptError& error) {
  json.begin_object().key("receive").integer(error.receive);
  json.key("started_at");
  write_time(json, error.started);
  json.key("ended_at");
  write_time(json, error.ended);
  json.key("code").string(error.code).key("message").string(error.message).key("status");
  if (error.status == 0) {
    json.null();
  } else {
    json.integer(error.status);
  }
  json.key("in_doubt").boolean(error.in_doubt).end_object();
}

}  // namespace

void write_time(JsonWriter& json, store::Time time) {
  if (time == store::kNever) {
    json.null();
    return;
  }
  fmt::memory_buffer text;
  fmt::format_to(fmt::appender(text), "{}.{:06}", time / 1'000'000, time % 1'000'000);
  json.raw({text.data(), text.size()});
}

void write_result(JsonWriter& json, const store::JobResult& result) {
  json.begin_object().key("status_code").integer(result.status).key("body");
  if (is_json(result.body)) {
    json.raw(result.body);
  } else {
    json.string(result.body);
  }
  json.key("facts");
  if (result.facts.empty()) {
    json.null();
  } else {
    json.raw(result.facts);
  }
  json.end_object();
}

void write_job(JsonWriter& json, const store::Job& job, const store::JobResult* result) {
  const std::string id = to_string(job.id);
  json.begin_object().key("id").string(id).key("object").string("job");
  json.key("status").string(to_string(job.state)).key("queue").string(job.queue);
  json.key("priority").integer(job.priority);
  for (const auto& [name, time] : {std::pair{"created_at", job.created},
                                   {"run_after", job.run_after},
                                   {"expires_at", job.expires},
                                   {"started_at", job.claimed},
                                   {"finished_at", job.finished}}) {
    json.key(name);
    write_time(json, time);
  }
  json.key("receives").integer(job.receives).key("max_receives").integer(job.max_receives);
  json.key("in_doubt").integer(job.in_doubt).key("endpoint").string(job.endpoint).key("metadata");
  if (job.metadata.empty()) {
    json.null();
  } else {
    json.raw(job.metadata);
  }
  json.key("webhook");
  const std::string webhook = read_attributes(job.attributes).webhook;
  if (webhook.empty()) {
    json.null();
  } else {
    json.string(webhook);
  }
  json.key("result_url");
  if (job.state == State::kCompleted || job.state == State::kFailed) {
    json.string("/v1/jobs/" + id + "/result");
  } else {
    json.null();
  }
  json.key("error");
  write_error_of(json, job, result);
  json.key("attempts").begin_array();
  for (const store::AttemptError& each : job.errors) write_attempt(json, each);
  json.end_array();
  if (result != nullptr) {
    json.key("result");
    write_result(json, *result);
  }
  json.end_object();
}

jobs::WebhookContents webhook_contents(const store::Job& job, const store::JobResult* result) {
  JobAttributes attributes = read_attributes(job.attributes);
  jobs::WebhookContents contents;
  JsonWriter json(contents.job);
  write_job(json, job, result);
  contents.traceparent = std::move(attributes.traceparent);
  contents.tracestate = std::move(attributes.tracestate);
  contents.correlation_id =
      attributes.correlation_id.empty() ? to_string(job.id) : std::move(attributes.correlation_id);
  return contents;
}

store::Job job_of(const store::Submit& submit) {
  store::Job job;
  job.queue = submit.queue;
  job.caller = submit.caller;
  job.priority = submit.priority;
  job.run_after = submit.run_after;
  job.expires = submit.expires;
  job.max_receives = submit.max_receives;
  job.endpoint = submit.endpoint;
  job.attributes = submit.attributes;
  job.metadata = submit.metadata;
  return job;
}

store::Time created_of(const Uuid& id) noexcept {
  const std::uint64_t high = id.high();
  const auto milliseconds = static_cast<std::int64_t>(high >> 16U);
  const auto fraction = static_cast<std::int64_t>(high & 0xFFFU);  // of a millisecond, in 4096 parts
  return milliseconds * 1000 + (fraction * 1000 + 2048) / 4096;
}

}  // namespace waybill::api
