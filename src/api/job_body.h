// The request that a job is to make: which endpoint it is for, and whether that would take it.
#pragma once

#include <string>
#include <string_view>

#include "api/job_source.h"
#include "base/result.h"
#include "upstream/terms.h"

namespace waybill::api {

struct JobBody {
  std::string endpoint;  // "/v1/chat/completions"
  std::string_view body;
};

// Of a queue that this server works on. `raw` is the body of a call, whose endpoint its fields tell, or
// {"method": "POST", "url": "/v1/...", "body": {...}}. What the endpoint would refuse at once is refused
// here: kInvalidInput, kNotFound or kPermissionDenied with the field, "request.messages".
[[nodiscard]] Result<JobBody> read_job_body(std::string_view raw, const JobSource& source);

// Whether the endpoint would take this body, for all that can be known without running it.
[[nodiscard]] Status check_call(upstream::Operation operation, std::string_view body,
                                const JobSource& source);

}  // namespace waybill::api
