// What all jobs of one request have in common.
#pragma once

#include <string_view>

#include "api/call.h"
#include "api/job_attributes.h"
#include "jobs/service.h"
#include "store/job.h"

namespace waybill::api {

// Used while the request is there.
struct JobSource {
  const Deployment& deployment;
  const jobs::Service& service;
  const Caller* caller = nullptr;  // null where no keys are asked for
  std::string_view idempotency_key;
  JobAttributes attributes;  // without the key and the webhook
  store::Time now = store::kNever;

  [[nodiscard]] std::string_view caller_name() const noexcept {
    return caller == nullptr ? std::string_view() : std::string_view(caller->name);
  }
};

}  // namespace waybill::api
