// Everything the program says about itself, put together.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"
#include "telemetry/otlp_exporter.h"
#include "telemetry/program_metrics.h"
#include "telemetry/waybill_book.h"
#include "telemetry/waybill_file.h"

namespace waybill::telemetry {

struct Options {
  std::string version = "0";  // of the program
  std::string kernels = {};   // the instruction set it computes with
  WaybillBookOptions waybills = {};
  LogOptions log = {};
  WaybillFileOptions file = {};                       // no path: none
  OtlpOptions otlp = {};                              // no endpoint: none
  Duration check_interval = std::chrono::seconds(1);  // of the ledger
};

// Owns the registry, the waybills, the log, the waybill file and the exporter, and checks the ledger on a
// thread of its own (named "ledger"). Thread-safe. Must outlive all waybills; the clock must outlive it.
class Telemetry {
 public:
  // Starts all of it. Fails when a file cannot be opened or the collector's address is wrong.
  [[nodiscard]] static Result<std::unique_ptr<Telemetry>> start(const Options& options, const Clock& clock);
  ~Telemetry();  // stop(), with a second to do it in

  [[nodiscard]] WaybillBook& waybills() noexcept;
  [[nodiscard]] Log& log() noexcept;
  [[nodiscard]] Registry& registry() noexcept;
  [[nodiscard]] ProgramMetrics& metrics() noexcept;

  // The share of the traces that start here that is exported, for accept_trace(); 0 without a collector.
  [[nodiscard]] double trace_sample_ratio() const noexcept;

  // The ledger now; sets its metrics, and logs an error when it does not balance.
  Ledger check_ledger();

  // In stages: the checker ends, what waits is flushed to the exporter, the file and last the log; all
  // together take about `bound` at most. Waybills may still be opened and closed afterwards; they move the
  // ledger and nothing else.
  void stop(Duration bound);

 private:
  struct Impl;
  explicit Telemetry(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill::telemetry
