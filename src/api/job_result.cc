#include "api/job_result.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "api/job_access.h"
#include "upstream/json_scanner.h"

namespace waybill::api {
namespace {

using store::State;

std::string_view content_type(const store::JobResult& result) noexcept {
  constexpr std::string_view kStream = "text/event-stream; charset=utf-8";
  return result.content_type.starts_with("text/event-stream") ? kStream
                                                              : std::string_view("application/json");
}

// {"target": "a/mock", ...} as x-waybill-target and so on.
void add_facts(std::string_view facts, http::Response& response) {
  upstream::JsonScanner json(facts);
  if (!json.enter_object()) return;
  for (upstream::JsonString key; json.next_member(key);) {
    std::string name = "x-waybill-";
    key.append_to(name);
    std::ranges::replace(name, '_', '-');
    upstream::JsonString text;
    std::string value;
    if (json.read(text)) {
      text.append_to(value);
    } else {
      value = json.skip();
    }
    // This answer has an id of its own.
    if (name != "x-waybill-request-id") response.add_header(name, value);
  }
}

Status no_answer(Call& call, const store::Job& job) {
  switch (job.state) {
    case State::kCancelled:
      return refuse(call, 410, "job_cancelled", "The job was cancelled; it has no answer.");
    case State::kExpired:
      return refuse(call, 410, "job_expired", "The job's time (expires_in) passed before it was done.");
    case State::kDead: {
      std::string why = "It was tried as often as it may be (max_receives).";
      if (!job.errors.empty()) why += " The last time: " + job.errors.back().message;
      return refuse(call, 410, "job_dead", std::move(why));
    }
    case State::kQueued:
    case State::kScheduled:
    case State::kRunning:
    case State::kHeld:
    case State::kCompleted:
    case State::kFailed:
      break;
  }
  return refuse(call, 409, "job_not_finished",
                fmt::format("The job is {}; ask again later, or wait: GET /v1/jobs/{}?wait=30.",
                            to_string(job.state), to_string(job.id)),
                1);
}

}  // namespace

http::Task<Status> answer_with_result(jobs::Service& service, Call& call, const store::Job& job) {
  Result<std::optional<store::JobResult>> result = co_await find_result(service, call, job);
  if (!result) co_return std::unexpected(std::move(result.error()));
  if (!*result) co_return no_answer(call, job);
  http::Response& response = call.response();
  response.status = (*result)->status;
  response.content_type = content_type(**result);
  response.body = std::move((*result)->body);
  add_facts((*result)->facts, response);
  co_return Status{};
}

}  // namespace waybill::api
