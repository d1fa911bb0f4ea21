// A call that a model answers, whichever endpoint it came through.
#pragma once

#include "api/call.h"
#include "base/result.h"
#include "http/task.h"
#include "upstream/terms.h"

namespace waybill::api {

class Gateway;

// Chooses the model, holds the caller to its limits, calls, and fills the response or streams it.
// chat_endpoint.cc
http::Task<Status> answer_by_model(Gateway& gateway, Call& call, upstream::Operation operation);

// x-waybill-lane: batch, else interactive.
[[nodiscard]] upstream::Lane lane_of(const http::Request& request) noexcept;

}  // namespace waybill::api
