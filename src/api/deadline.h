// How long a caller waits.
#pragma once

#include <optional>

#include "base/clock.h"
#include "base/result.h"
#include "config/config.h"
#include "http/request.h"

namespace waybill::api {

// "x-waybill-timeout-ms" (milliseconds), else "x-stainless-read-timeout" (seconds; OpenAI's clients send it),
// else admission.deadline, or for a call to a model the longest; at most admission.max_deadline.
// kInvalidInput names the header.
[[nodiscard]] Result<Duration> timeout_of(const http::Request& request, const config::Admission& admission,
                                          bool calls_model = false);

}  // namespace waybill::api
