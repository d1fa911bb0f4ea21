#include "api/job_request.h"

#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "api/job_reader.h"
#include "api/request_hash.h"
#include "upstream/json_scanner.h"

namespace waybill::api {
namespace {

using upstream::JsonScanner;
using upstream::JsonString;

// The list of {"jobs": [...]}, raw; nothing: the body is one job.
Result<std::optional<std::string_view>> list_of(std::string_view body) {
  if (body.find("\"jobs\"") == std::string_view::npos) return std::nullopt;
  JsonScanner json(body);
  std::optional<std::string_view> list;
  if (!json.enter_object()) return std::nullopt;
  for (JsonString key; json.next_member(key);) {
    const std::string_view value = json.skip();
    if (key.is("jobs")) list = value;
  }
  if (list && !json.at_end()) return malformed(json);
  return list;
}

Status check_list_alone(std::string_view body) {
  JsonScanner json(body);
  if (!json.enter_object()) return {};
  for (JsonString key; json.next_member(key);) {
    if (!key.is("jobs")) {
      return fail(ErrorCode::kInvalidInput,
                  "Beside \"jobs\" there is no other field; each job in it has its own.", "jobs");
    }
    json.skip();
  }
  return {};
}

}  // namespace

JobSource job_source(const Call& call, const jobs::Service& service) {
  const http::Request& request = call.request();
  JobSource source = {.deployment = *call.deployment,
                      .service = service,
                      .caller = call.caller,
                      .idempotency_key = request.header("idempotency-key"),
                      .attributes = {},
                      .now = jobs::store_now()};
  source.attributes.correlation_id = request.header("x-correlation-id");
  source.attributes.traceparent = request.header("traceparent");
  source.attributes.tracestate = request.header("tracestate");
  source.attributes.session = request.header("x-waybill-session");
  source.attributes.cache = request.header("x-waybill-cache");
  return source;
}

Result<JobRequest> read_job_request(std::string_view body, const JobSource& source) {
  JobRequest request;
  if (Status good = check_idempotency_key(source.idempotency_key); !good)
    return std::unexpected(std::move(good.error()));
  const Result<std::optional<std::string_view>> found = list_of(body);
  if (!found) return std::unexpected(found.error());
  const std::optional<std::string_view> list = *found;
  if (!list) {
    Result<store::Submit> job = read_job(body, std::nullopt, source);
    if (!job) return std::unexpected(std::move(job.error()));
    request.jobs.push_back(std::move(*job));
    return request;
  }
  request.many = true;
  if (Status alone = check_list_alone(body); !alone) return std::unexpected(std::move(alone.error()));
  const std::size_t most = source.service.settings()->max_jobs_per_call;
  JsonScanner json(*list);
  if (!json.enter_array()) return fail(ErrorCode::kInvalidInput, "\"jobs\" must be a list of jobs.", "jobs");
  while (json.next_element()) {
    const std::size_t index = request.jobs.size();
    if (index == most) {
      return fail(ErrorCode::kInvalidInput,
                  fmt::format("At most {} jobs are taken at a time (jobs.max_jobs_per_call).", most), "jobs");
    }
    Result<store::Submit> job = read_job(json.skip(), index, source);
    if (!job) {
      Error error = std::move(job.error());
      error.field = error.field.empty() ? fmt::format("jobs[{}]", index)
                                        : fmt::format("jobs[{}].{}", index, error.field);
      return std::unexpected(std::move(error));
    }
    request.jobs.push_back(std::move(*job));
  }
  if (request.jobs.empty()) return fail(ErrorCode::kInvalidInput, "\"jobs\" is empty.", "jobs");
  return request;
}

Result<store::Submit> job_of_call(upstream::Operation operation, std::string_view body,
                                  std::string_view queue, const JobSource& source) {
  auto found = find_queue(queue, source.service);
  if (!found) return std::unexpected(std::move(found.error()));
  const config::JobQueue& settings = **found;
  if (settings.workers == config::QueueWorkers::kExternal) {
    return fail(
        ErrorCode::kInvalidInput,
        fmt::format("The queue \"{}\" is for workers elsewhere; a call to a model needs one that this "
                    "server works on.",
                    queue),
        "x-waybill-queue");
  }
  if (settings.require_idempotency_key && source.idempotency_key.empty()) return key_needed(settings);
  store::Submit submit;
  submit.queue = settings.name;
  submit.caller = source.caller_name();
  submit.endpoint = "/v1";
  submit.endpoint += upstream::path_of(operation);
  submit.body = body;
  submit.max_depth = settings.max_depth;
  submit.max_receives = static_cast<std::uint32_t>(settings.max_receives);
  JobAttributes attributes = source.attributes;
  if (!source.idempotency_key.empty()) {
    attributes.idempotency_key = source.idempotency_key;
    submit.key = key_of_call(operation, body, source);
  }
  submit.attributes = write_attributes(attributes);
  return submit;
}

store::IdempotencyKey key_of_call(upstream::Operation operation, std::string_view body,
                                  const JobSource& source) {
  const auto ttl = source.service.settings()->idempotency_ttl;
  return {.key = hash_of(std::array{source.caller_name(), source.idempotency_key}),
          .payload = hash_of(std::array{upstream::path_of(operation), body}),
          .until = source.now + std::chrono::duration_cast<std::chrono::microseconds>(ttl).count()};
}

}  // namespace waybill::api
