#include "telemetry/program_metrics.h"

namespace waybill::telemetry {

ProgramMetrics::ProgramMetrics(Registry& registry)
    : requests(registry.counters("waybill_requests_total")),
      request_seconds(registry.histograms("waybill_request_seconds")),
      stage_seconds(registry.histograms("waybill_stage_seconds")),
      timeouts(registry.counters("waybill_timeouts_total")),
      degraded_decisions(registry.counters("waybill_degraded_decisions_total").with({})),
      queue_tokens(registry.gauges("waybill_queue_tokens").with({})),
      predicted_wait_seconds(registry.gauges("waybill_predicted_wait_seconds").with({})),
      embedding_queue_tokens(registry.gauges("waybill_embedding_queue_tokens").with({})),
      waiting_texts(registry.gauges("waybill_waiting_texts").with({})),
      batch_sequences(registry.histograms("waybill_batch_sequences").with({})),
      batch_tokens(registry.histograms("waybill_batch_tokens").with({})),
      cache_hits(registry.counters("waybill_cache_hits_total").with({})),
      cache_misses(registry.counters("waybill_cache_misses_total").with({})),
      event_loop_lag_seconds(registry.histograms("waybill_event_loop_lag_seconds").with({})),
      connections(registry.gauges("waybill_connections").with({})),
      connections_total(registry.counters("waybill_connections_total").with({})),
      write_stalls(registry.counters("waybill_write_stalls_total").with({})),
      handler_exceptions(registry.counters("waybill_handler_exceptions_total").with({})),
      ledger(registry.gauges("waybill_ledger")),
      ledger_imbalance(registry.gauges("waybill_ledger_imbalance").with({})),
      upstream_calls(registry.counters("waybill_upstream_calls_total")),
      upstream_seconds(registry.histograms("waybill_upstream_seconds")),
      upstream_first_token_seconds(registry.histograms("waybill_upstream_first_token_seconds")),
      retries(registry.counters("waybill_retries_total")),
      retries_refused(registry.counters("waybill_retries_refused_total").with({})),
      target_state(registry.gauges("waybill_target_state")),
      provider_in_flight(registry.gauges("waybill_provider_in_flight")),
      lane_waiting(registry.gauges("waybill_lane_waiting")),
      tokens(registry.counters("waybill_tokens_total")),
      cost_usd(registry.counters("waybill_cost_usd_total")),
      log_lines_dropped(registry.counters("waybill_log_lines_dropped_total").with({})),
      file_lines_dropped(registry.counters("waybill_file_lines_dropped_total").with({})),
      trace_spans_exported(registry.counters("waybill_trace_spans_exported_total").with({})),
      trace_spans_dropped(registry.counters("waybill_trace_spans_dropped_total").with({})),
      config_reloads(registry.counters("waybill_config_reloads_total")),
      build_info(registry.gauges("waybill_build_info")) {}

}  // namespace waybill::telemetry
