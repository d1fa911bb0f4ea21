// A job's answer as the endpoint that it called would have given it; and what answers of several endpoints
// are made of.
#pragma once

#include "api/call.h"
#include "api/job_submit.h"
#include "base/result.h"
#include "http/response.h"
#include "http/task.h"
#include "jobs/service.h"
#include "store/store.h"

namespace waybill::api {

// Status, content type, body and x-waybill-* headers of the answer; or why there is none: 409 while it has
// not ended, 410 when it will have none.
http::Task<Status> answer_with_result(jobs::Service& service, Call& call, const store::Job& job);

// 202, the job, where it is found and when to look. jobs_endpoint.cc
void write_accepted(const Accepted& accepted, http::Response& response);

// The list of those that the filter lets through; its limit is one more than are shown. jobs_endpoint.cc
http::Task<Status> list_jobs_of(jobs::Service& service, Call& call, store::JobFilter filter);

}  // namespace waybill::api
