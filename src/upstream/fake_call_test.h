// A call that goes nowhere, for what only reads and writes its bytes.
#pragma once

#include <string_view>

#include "base/result.h"
#include "upstream/call.h"

namespace waybill::upstream {

class FakeCall {
 public:
  // The body must outlive it.
  FakeCall(Operation operation, std::string_view body)
      : status_(request_.parse(operation, body)),
        call_{.operation = operation,
              .request = request_,
              .model = status_ ? request_.model() : std::string_view(),
              .caller = {},
              .idempotency_key = "key-1",
              .request_id = "0193a3e4-7c5e-7000-8000-00000000000a",
              .traceparent = {},
              .tracestate = {},
              .cancellation = cancellation_,
              .loop = loop_,
              .waybill = waybill_} {}

  [[nodiscard]] const Status& status() const noexcept { return status_; }  // of reading the body
  [[nodiscard]] const Call& call() const noexcept { return call_; }

 private:
  ChatRequest request_;
  Status status_;
  http::Cancellation cancellation_;
  http::EventLoop loop_{0, {}};
  telemetry::Waybill waybill_;
  Call call_;
};

}  // namespace waybill::upstream
