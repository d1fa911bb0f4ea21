// The program's metrics by name, so that nobody spells one twice. What each means: metric_catalog.cc.
#pragma once

#include "telemetry/metrics.h"

namespace waybill::telemetry {

struct ProgramMetrics {
  explicit ProgramMetrics(Registry& registry);

  Family<Counter>& requests;           // endpoint, route, tier, outcome
  Family<Histogram>& request_seconds;  // endpoint
  Family<Histogram>& stage_seconds;    // stage
  Family<Counter>& timeouts;           // stage
  Counter& degraded_decisions;
  Gauge& queue_tokens;
  Gauge& predicted_wait_seconds;
  Gauge& embedding_queue_tokens;
  Gauge& waiting_texts;
  Histogram& batch_sequences;
  Histogram& batch_tokens;
  Counter& cache_hits;
  Counter& cache_misses;
  Histogram& event_loop_lag_seconds;
  Gauge& connections;
  Counter& connections_total;
  Counter& write_stalls;
  Counter& handler_exceptions;
  Family<Gauge>& ledger;  // state
  Gauge& ledger_imbalance;
  Counter& log_lines_dropped;
  Counter& file_lines_dropped;
  Counter& trace_spans_exported;
  Counter& trace_spans_dropped;
  Family<Counter>& config_reloads;  // result: ok, error
  Family<Gauge>& build_info;        // version, compiler, kernels; always 1
};

}  // namespace waybill::telemetry
