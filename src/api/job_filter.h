// What the queries of lists of jobs ask for.
#pragma once

#include <string_view>

#include "api/call.h"
#include "base/result.h"
#include "store/store.h"

namespace waybill::api {

// status, queue, metadata.NAME, after, limit; of the caller's own jobs, but for those who see all; records of
// calls (jobs::kCallQueue) only where their queue is named. The limit is one more than was asked for, so that
// it is known whether there are more. kInvalidInput names the parameter.
[[nodiscard]] Result<store::JobFilter> read_job_filter(const Call& call);

}  // namespace waybill::api
