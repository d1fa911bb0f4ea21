// Errors become answers here, and only here: status, OpenAI's error object, Retry-After, and the outcome that
// is recorded.
#pragma once

#include <string_view>

#include "base/result.h"
#include "http/response.h"
#include "telemetry/record.h"

namespace waybill::api {

// What an answer needs beyond an Error; the views are literals.
struct Problem {
  unsigned status = 500;
  std::string_view type;  // "invalid_request_error", ...
  std::string_view code;  // "missing_field", ...
  telemetry::Outcome outcome = telemetry::Outcome::kFailed;
};

[[nodiscard]] Problem problem_of(ErrorCode code) noexcept;

// The stage in which a request failed: the last one that it reached, or the one that it was waiting for.
[[nodiscard]] telemetry::Stage stage_of(const telemetry::Record& record, telemetry::Outcome outcome) noexcept;

// {"error":{"message","type","param","code"}}, all four present, and Retry-After where trying again may help.
void write_error(const Error& error, const Problem& problem, http::Response& response);

}  // namespace waybill::api
