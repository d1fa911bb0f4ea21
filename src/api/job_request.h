// What POST /v1/jobs asks for: read whole and checked before anything is accepted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/call.h"
#include "api/job_source.h"
#include "base/result.h"
#include "store/command.h"
#include "upstream/terms.h"

namespace waybill::api {

[[nodiscard]] JobSource job_source(const Call& call, const jobs::Service& service);

struct JobRequest {
  std::vector<store::Submit> jobs;
  bool many = false;  // they came as a list
};

// kInvalidInput, kNotFound (the model, the queue) and kPermissionDenied name the field: "priority",
// "request.model", "jobs[3].queue". The body's text is copied.
[[nodiscard]] Result<JobRequest> read_job_request(std::string_view body, const JobSource& source);

// A call to a model as a job of the queue named. The caller is to have read `body` as this operation before.
[[nodiscard]] Result<store::Submit> job_of_call(upstream::Operation operation, std::string_view body,
                                                std::string_view queue, const JobSource& source);

// By the Idempotency-Key of a call, whether it becomes a job or not: what was asked is its path and its body.
[[nodiscard]] store::IdempotencyKey key_of_call(upstream::Operation operation, std::string_view body,
                                                const JobSource& source);

}  // namespace waybill::api
