// What a webhook says: a CloudEvent 1.0 in structured JSON, in an HTTP request that Standard Webhooks signs.
// https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "jobs/webhook_address.h"
#include "jobs/webhook_signature.h"
#include "store/job.h"

namespace waybill::jobs {

// The job as its receiver is told of it.
struct WebhookContents {
  std::string job;                      // a JSON object
  std::string traceparent, tracestate;  // of whoever submitted it; empty: none
  std::string correlation_id;
};

// The same for all attempts, also those after a restart: a receiver that keeps it does nothing twice. Another
// when the job was tried again and has ended anew.
[[nodiscard]] std::string webhook_id(const store::Job& job);

// "ai.waybill.job.completed", ... of a job that has ended.
[[nodiscard]] std::string webhook_type(store::State state);

[[nodiscard]] std::string write_webhook_event(const store::Job& job, const WebhookContents& contents);

// The head of the request, to its empty line. `timestamp`: seconds since 1970.
[[nodiscard]] std::string write_webhook_head(const WebhookUrl& url, const store::Job& job,
                                             const WebhookContents& contents,
                                             std::span<const WebhookSecret> secrets, std::int64_t timestamp,
                                             std::string_view body);

}  // namespace waybill::jobs
