#include "api/error_answer.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/json_writer.h"

namespace waybill::api {

using telemetry::Outcome;

Problem problem_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidInput:
      return {400, "invalid_request_error", "invalid_value", Outcome::kRejected};
    case ErrorCode::kNotFound:
      return {404, "invalid_request_error", "not_found", Outcome::kRejected};
    case ErrorCode::kUnsupported:
      return {400, "invalid_request_error", "unsupported", Outcome::kRejected};
    case ErrorCode::kUnauthenticated:
      return {401, "authentication_error", "invalid_api_key", Outcome::kRejected};
    case ErrorCode::kPermissionDenied:
      return {403, "permission_error", "admin_key_required", Outcome::kRejected};
    case ErrorCode::kMethodNotAllowed:
      return {405, "invalid_request_error", "method_not_allowed", Outcome::kRejected};
    case ErrorCode::kOverloaded:
      return {503, "server_overloaded", "overloaded", Outcome::kRejected};
    case ErrorCode::kRateLimited:
      return {429, "rate_limit_error", "rate_limit_exceeded", Outcome::kRejected};
    case ErrorCode::kQuotaExceeded:
      return {429, "insufficient_quota", "insufficient_quota", Outcome::kRejected};
    case ErrorCode::kKeyReused:
      return {422, "invalid_request_error", "idempotency_key_reused", Outcome::kRejected};
    case ErrorCode::kUpstreamFailed:
      return {502, "upstream_error", "upstream_failed", Outcome::kFailed};
    case ErrorCode::kUpstreamTimeout:
      return {504, "upstream_error", "upstream_timeout", Outcome::kFailed};
    case ErrorCode::kDeadlineExceeded:
      return {504, "timeout_error", "deadline_exceeded", Outcome::kExpired};
    case ErrorCode::kCancelled:
      return {499, "client_closed_request", "cancelled", Outcome::kCancelled};
    case ErrorCode::kShuttingDown:
      return {503, "server_error", "shutting_down", Outcome::kRejected};
    case ErrorCode::kStoreUnavailable:
      return {503, "server_error", "store_unavailable", Outcome::kRejected};
    case ErrorCode::kCorrupt:
    case ErrorCode::kIo:
    case ErrorCode::kInternal:
      break;
  }
  return {500, "server_error", "internal", Outcome::kFailed};
}

telemetry::Stage stage_of(const telemetry::Record& record, Outcome outcome) noexcept {
  using telemetry::Stage;
  Stage last = Stage::kRead;
  for (std::size_t i = 0; i < telemetry::kStages; ++i) {
    if (record.stages[i].reached()) last = static_cast<Stage>(i);
  }
  // Who was expired or cancelled after admission was in the queue.
  const bool waited = outcome == Outcome::kExpired || outcome == Outcome::kCancelled;
  return waited && last < Stage::kEncode && last != Stage::kRead ? Stage::kQueue
         : last == Stage::kRead                                  ? Stage::kAdmit
                                                                 : last;
}

void write_error(const Error& error, const Problem& problem, http::Response& response) {
  response.status = problem.status;
  response.content_type = "application/json";
  response.body.clear();
  JsonWriter json(response.body);
  json.begin_object().key("error").begin_object();
  json.key("message").string(error.message).key("type").string(problem.type).key("param");
  if (error.field.empty()) {
    json.null();
  } else {
    json.string(error.field);
  }
  json.key("code").string(problem.code).end_object().end_object();
  if (problem.status == 503 || problem.status == 429) {
    // Whole seconds (RFC 9110 section 10.2.3), and for those who can read it the exact figure.
    const double wait_seconds = std::max(0.0, std::chrono::duration<double>(error.retry_after).count());
    response.add_header("Retry-After",
                        std::to_string(std::max(1LL, static_cast<long long>(std::ceil(wait_seconds)))));
    if (wait_seconds > 0) {
      response.add_header("retry-after-ms",
                          std::to_string(static_cast<long long>(std::ceil(wait_seconds * 1000))));
    }
  }
}

}  // namespace waybill::api
