// What a closed waybill moves in the metrics.
#pragma once

#include <array>
#include <string_view>

#include "telemetry/program_metrics.h"
#include "telemetry/waybill_book.h"

namespace waybill::telemetry {

class MetricsSink final : public WaybillSink {
 public:
  explicit MetricsSink(ProgramMetrics& metrics);
  void closed(const Record& record) noexcept override;

 private:
  ProgramMetrics& metrics_;
  std::array<Histogram*, kStages> stages_{};  // looked up once
  std::array<Counter*, kStages> timeouts_{};
};

// The stage in which it ended: that of its error, else the last one it reached.
[[nodiscard]] Stage last_stage(const Record& record) noexcept;

}  // namespace waybill::telemetry
