#include "api/job_access.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "api/endpoint.h"
#include "api/gateway.h"
#include "api/job_wait.h"

namespace waybill::api {
namespace {

std::unexpected<Error> no_job(std::string_view id) {
  return fail(ErrorCode::kNotFound,
              fmt::format("There is no job \"{}\": it never was here, is another caller's, or was removed "
                          "when its retention had passed.",
                          id.substr(0, 100)),
              "id");
}

http::Task<Result<std::optional<store::Job>>> look_up(jobs::Service& service, Call& call, Uuid id) {
  auto look = [id](store::Store& from) { return from.find(id); };
  Result<std::optional<store::Job>> found = co_await service.read(call.exchange.loop(), look);
  if (found && *found && !sees_all(call) && (*found)->caller != call.caller->name) found->reset();
  co_return found;
}

}  // namespace

Result<jobs::Service*> jobs_of(const Gateway& gateway) {
  if (gateway.jobs() != nullptr) return gateway.jobs();
  return fail(ErrorCode::kNotFound,
              "This server keeps no jobs: set store.path in waybill.yaml to the file that is to hold them.");
}

bool sees_all(const Call& call) noexcept { return call.caller == nullptr || call.caller->admin; }

Status check_worker(const Call& call) {
  if (sees_all(call)) return {};
  return fail(ErrorCode::kPermissionDenied,
              fmt::format("A worker is told what all callers ask: the key \"{}\" would need admin: true.",
                          call.caller->name));
}

http::Task<Result<store::Job>> find_job(jobs::Service& service, Call& call) {
  const std::string text = path_argument(call);
  const std::optional<Uuid> id = parse_uuid(text);
  if (!id) co_return no_job(text);
  Result<std::optional<store::Job>> found = co_await look_up(service, call, *id);
  if (!found) co_return std::unexpected(std::move(found.error()));
  if (!*found) co_return no_job(text);
  co_return std::move(**found);
}

http::Task<Result<std::optional<store::JobResult>>> find_result(jobs::Service& service, Call& call,
                                                                const store::Job& job) {
  if (job.state != store::State::kCompleted && job.state != store::State::kFailed) co_return std::nullopt;
  auto look = [id = job.id](store::Store& from) { return from.result(id); };
  Result<std::optional<store::JobResult>> result = co_await service.read(call.exchange.loop(), look);
  co_return result;
}

http::Task<Result<store::Job>> wait_for_end(Gateway& gateway, jobs::Service& service, Call& call, Uuid id,
                                            TimePoint until) {
  JobWait wait(gateway, call.exchange);
  // Before the first look: nothing that happens after it is missed.
  const jobs::Hub::Subscription news =
      service.hub().watch(id, call.exchange.loop(), [wake = wait.waker()](const store::Change& change) {
        if (is_terminal(change.state) || change.removed) wake();
      });
  for (;;) {
    Result<std::optional<store::Job>> found = co_await look_up(service, call, id);
    if (!found) co_return std::unexpected(std::move(found.error()));
    if (!*found) co_return no_job(to_string(id));
    if (is_terminal((*found)->state)) co_return std::move(**found);
    const JobWait::End end = co_await wait.wait(until);
    if (end == JobWait::End::kGone) co_return fail(ErrorCode::kCancelled, "The client went away.");
    if (end != JobWait::End::kNews) co_return std::move(**found);
  }
}

Status refuse(Call& call, unsigned status, std::string_view code, std::string message, unsigned retry_after) {
  Error error = {.code = ErrorCode::kInvalidInput, .message = std::move(message), .field = {}};
  const Problem problem = {status, "invalid_request_error", code, telemetry::Outcome::kRejected};
  write_error(error, problem, call.response());
  if (retry_after > 0) call.response().add_header("Retry-After", std::uint64_t{retry_after});
  call.has_answer = true;
  return std::unexpected(std::move(error));
}

Result<std::optional<Duration>> read_wait(std::string_view query) {
  std::string text;
  if (!http::query_parameter(query, "wait", text)) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value <= kMostWait)) {
    return fail(ErrorCode::kInvalidInput,
                fmt::format("\"wait\" must be a number of seconds from 0 to {}.", kMostWait), "wait");
  }
  return Duration(static_cast<Duration::rep>(value * 1e9));
}

TimePoint end_of_wait(const Call& call, Duration wait) {
  const TimePoint end = std::chrono::steady_clock::now() + wait;
  const http::Request& request = call.request();
  const bool said =
      !request.header("x-waybill-timeout-ms").empty() || !request.header("x-stainless-read-timeout").empty();
  return said ? std::min(end, call.deadline) : end;
}

}  // namespace waybill::api
