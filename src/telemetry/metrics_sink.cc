#include "telemetry/metrics_sink.h"

namespace waybill::telemetry {

MetricsSink::MetricsSink(ProgramMetrics& metrics) : metrics_(metrics) {
  for (std::size_t i = 0; i < kStages; ++i) {
    const std::string_view stage = to_string(static_cast<Stage>(i));
    stages_[i] = &metrics.stage_seconds.with({stage});
    timeouts_[i] = &metrics.timeouts.with({stage});
  }
}

Stage last_stage(const Record& record) noexcept {
  if (!record.error_code.empty()) return record.error_stage;
  for (std::size_t i = kStages; i-- > 0;) {
    if (record.stages[i].reached()) return static_cast<Stage>(i);
  }
  return Stage::kRead;
}

void MetricsSink::closed(const Record& r) noexcept {
  const std::int64_t time_us = r.started_us + static_cast<std::int64_t>(r.duration_us);
  // Only a trace that is exported can be looked at, so only those are examples.
  const auto observe = [&](Histogram& histogram, double us) {
    if (r.sampled) {
      histogram.observe(us * 1e-6, r.trace_id, time_us);
    } else {
      histogram.observe(us * 1e-6);
    }
  };
  Counter& requests =
      metrics_.requests.with({r.endpoint.view(), r.route.view(), r.tier.view(), to_string(r.outcome)});
  if (r.sampled) {
    requests.add(1, r.trace_id, time_us);
  } else {
    requests.add();
  }
  observe(metrics_.request_seconds.with({r.endpoint.view()}), static_cast<double>(r.duration_us));
  for (std::size_t i = 0; i < kStages; ++i) {
    if (r.stages[i].reached()) observe(*stages_[i], r.stages[i].length_us);
  }
  if (r.outcome == Outcome::kExpired) timeouts_[static_cast<std::size_t>(last_stage(r))]->add();
  if (r.degraded != 0) metrics_.degraded_decisions.add(r.degraded);
}

}  // namespace waybill::telemetry
