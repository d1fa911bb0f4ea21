// A request that has been accepted: what an endpoint works with.
#pragma once

#include <memory>

#include "api/deployment.h"
#include "api/keys.h"
#include "http/exchange.h"
#include "telemetry/waybill.h"
#include "upstream/call.h"

namespace waybill::api {

struct Endpoint;

// What stands in for a connection and its key where a job is performed. The views and references outlive it.
struct JobCall {
  upstream::CallGate& gate;
  std::string_view caller;           // the name of its key; empty: none
  std::string_view idempotency_key;  // for providers
  TimePoint deadline = TimePoint::max();
  telemetry::Record record = {};  // of the waybill, at its end
};

struct Call {
  http::Exchange& exchange;
  const Endpoint* endpoint = nullptr;            // null: there is none at its path
  std::shared_ptr<const Deployment> deployment;  // the configuration it began with, kept to its end
  telemetry::Waybill waybill;                    // empty for endpoints that are not accounted for
  const Caller* caller = nullptr;                // null where no keys are asked for
  const JobCall* job = nullptr;                  // of a job that is performed
  TimePoint deadline = TimePoint::max();
  bool has_answer = false;  // the response holds what is to be told, though the request has failed

  [[nodiscard]] http::Request& request() const noexcept { return exchange.request; }
  [[nodiscard]] http::Response& response() const noexcept { return exchange.response; }
};

// Under which ids the request is known, here and at its sender. Done for all answers but those whose head
// goes out before their end.
void add_id_headers(const Call& call);

}  // namespace waybill::api
