// Traces to an OpenTelemetry collector: OTLP/HTTP with JSON bodies, specification 1.x.
// https://opentelemetry.io/docs/specs/otlp/#otlphttp
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "telemetry/waybill_book.h"

namespace waybill::telemetry {

struct OtlpOptions {
  std::string endpoint =
      {};  // "http://collector:4318"; /v1/traces is added when it has no path. Empty: no export
  std::vector<std::pair<std::string, std::string>> headers = {};  // of each request, for credentials
  std::string service_name = "waybill";
  std::string service_version = {};
  double sample_ratio = 1;   // of the traces that start here; one that goes on keeps the caller's flag
  std::size_t queue = 4096;  // requests that wait; beyond, they are dropped and counted
  std::size_t batch = 256;   // requests in one export at most
  Duration interval = std::chrono::seconds(2);  // how long a request waits for company
  Duration timeout = std::chrono::seconds(10);  // of one try
  unsigned tries = 5;  // with growing pauses, on 429, 502, 503, 504 and when nobody answers
  Duration first_pause = std::chrono::milliseconds(500);
};

// A span for each request that is sampled, with a child for each stage; sent by a thread of its own (named
// "otlp"). A collector that is slow, dead or talks nonsense costs spans, which are counted, and nothing else.
// Thread-safe.
class OtlpExporter final : public WaybillSink {
 public:
  // Fails with kInvalidInput or kUnsupported when the endpoint is no http:// address.
  [[nodiscard]] static Result<std::unique_ptr<OtlpExporter>> make(const OtlpOptions& options);
  ~OtlpExporter() override;  // stop(), with a second to do it in

  void closed(const Record& record) noexcept override;

  // Spans, children included.
  [[nodiscard]] std::uint64_t exported() const noexcept;
  [[nodiscard]] std::uint64_t dropped() const noexcept;
  [[nodiscard]] std::string last_error() const;  // why spans were dropped or a try failed; empty: none has
  // What is queued is sent first, for at most `bound`.
  void stop(Duration bound);

 private:
  struct Impl;
  explicit OtlpExporter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill::telemetry
