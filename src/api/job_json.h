// Jobs, as the API shows them.
#pragma once

#include <string>

#include "base/json_writer.h"
#include "jobs/webhook_event.h"
#include "store/command.h"
#include "store/job.h"

namespace waybill::api {

// Unix time in seconds with six decimals; null for kNever.
void write_time(JsonWriter& json, store::Time time);

// {"id", "object": "job", "status", ...}. `result`: how it ended, embedded; null: not shown, or not there.
void write_job(JsonWriter& json, const store::Job& job, const store::JobResult* result = nullptr);

// {"status_code", "body", "facts"}; the body is JSON as it is, where it is JSON, else a string.
void write_result(JsonWriter& json, const store::JobResult& result);

// The job as its webhook is told of it.
[[nodiscard]] jobs::WebhookContents webhook_contents(const store::Job& job, const store::JobResult* result);

// The job as it stands when it has just been submitted: without an id, a time and a state.
[[nodiscard]] store::Job job_of(const store::Submit& submit);
// When an id of the store was made, in microseconds.
[[nodiscard]] store::Time created_of(const Uuid& id) noexcept;

}  // namespace waybill::api
