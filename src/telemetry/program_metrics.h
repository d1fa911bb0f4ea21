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
  Counter& connections_refused;
  Counter& write_stalls;
  Gauge& request_body_bytes;
  Counter& request_bodies_refused;
  Counter& handler_exceptions;
  Family<Gauge>& ledger;  // state
  Gauge& ledger_imbalance;
  Family<Counter>& upstream_calls;                  // target, result
  Family<Counter>& upstream_timeouts;               // target, stage
  Family<Histogram>& upstream_seconds;              // target
  Family<Histogram>& upstream_first_token_seconds;  // target
  Family<Counter>& retries;                         // reason
  Counter& retries_refused;
  Family<Gauge>& target_state;        // target
  Family<Gauge>& provider_in_flight;  // provider
  Family<Gauge>& lane_waiting;        // provider, lane
  Family<Counter>& tokens;            // model, kind
  Family<Counter>& cost_usd;          // model; counted in 1e-9 US dollars
  Family<Counter>& key_cost_usd;      // key; likewise
  Family<Counter>& route_cost_usd;    // route; likewise
  Family<Counter>& response_cache;    // result: hit, miss, shared, bypass, replayed
  Gauge& response_cache_bytes;
  Family<Counter>& webhook_deliveries;  // result: delivered, again, gone, dead
  Histogram& webhook_seconds;
  Gauge& webhook_pending;
  Gauge& webhook_dead;
  Family<Counter>& jobs_submitted;       // queue
  Family<Counter>& jobs_finished;        // queue, state
  Family<Gauge>& jobs_depth;             // queue, state
  Family<Gauge>& jobs_oldest_seconds;    // queue
  Family<Gauge>& dead_letters;           // queue
  Family<Counter>& job_receives;         // queue
  Family<Counter>& job_attempts_failed;  // queue, code
  Family<Counter>& in_doubt;             // queue
  Family<Counter>& lease_expired;        // queue
  Family<Histogram>& job_queue_seconds;  // queue
  Family<Histogram>& job_run_seconds;    // queue
  Gauge& jobs_unsettled;
  Histogram& store_commit_rows;
  Histogram& store_commit_seconds;
  Family<Gauge>& store_writable;  // no labels; there only where there is a store
  Gauge& store_waiting;
  Counter& log_lines_dropped;
  Counter& file_lines_dropped;
  Counter& trace_spans_exported;
  Counter& trace_spans_dropped;
  Family<Counter>& config_reloads;  // result: ok, error
  Family<Gauge>& build_info;        // version, compiler, kernels; always 1
};

}  // namespace waybill::telemetry
