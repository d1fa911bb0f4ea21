// What a job keeps of the request that made it, beside its body.
#pragma once

#include <string>
#include <string_view>

namespace waybill::api {

// Empty: not said.
struct JobAttributes {
  std::string idempotency_key;  // as it was sent; for providers
  std::string correlation_id;
  std::string traceparent, tracestate;
  std::string session, cache;  // x-waybill-session, x-waybill-cache
  std::string webhook;         // a URL
};

// As the store has them, store::Job::attributes: a JSON object of what is not empty; "" where all is.
[[nodiscard]] std::string write_attributes(const JobAttributes& attributes);
// What it does not know, and what is no such object, is left aside.
[[nodiscard]] JobAttributes read_attributes(std::string_view json);

}  // namespace waybill::api
