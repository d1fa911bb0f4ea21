#include "telemetry/metric_catalog.h"

#include <array>

namespace waybill::telemetry {
namespace {

using Labels = std::span<const std::string_view>;
using Buckets = std::span<const double>;

constexpr std::array<double, 21> kSeconds = {0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001,
                                             0.0025,  0.005,    0.01,    0.025,  0.05,    0.1,    0.25,
                                             0.5,     1,        2.5,     5,      10,      30,     60};
constexpr std::array<double, 9> kSequences = {1, 2, 4, 8, 16, 32, 64, 128, 256};
constexpr std::array<double, 10> kTokens = {8, 16, 32, 64, 96, 128, 192, 256, 384, 512};

constexpr std::array<std::string_view, 4> kRequestLabels = {"endpoint", "route", "tier", "outcome"};
constexpr std::array<std::string_view, 1> kEndpoint = {"endpoint"};
constexpr std::array<std::string_view, 1> kStage = {"stage"};
constexpr std::array<std::string_view, 1> kState = {"state"};
constexpr std::array<std::string_view, 1> kResult = {"result"};
constexpr std::array<std::string_view, 1> kTarget = {"target"};
constexpr std::array<std::string_view, 2> kTargetResult = {"target", "result"};
constexpr std::array<std::string_view, 1> kReason = {"reason"};
constexpr std::array<std::string_view, 2> kModelKind = {"model", "kind"};
constexpr std::array<std::string_view, 1> kModel = {"model"};
constexpr std::array<std::string_view, 1> kProvider = {"provider"};
constexpr std::array<std::string_view, 2> kProviderLane = {"provider", "lane"};
constexpr std::array<std::string_view, 3> kBuild = {"version", "compiler", "kernels"};

constexpr auto kCounter = MetricKind::kCounter;
constexpr auto kGauge = MetricKind::kGauge;
constexpr auto kHistogram = MetricKind::kHistogram;

constexpr auto kCatalog = std::to_array<MetricDescriptor>({
    {"waybill_requests_total",
     kCounter,
     "",
     "Requests that have ended, by how they were decided and how they ended.",
     kRequestLabels,
     {}},
    {"waybill_request_seconds", kHistogram, "seconds", "From a request's first byte to its end.", kEndpoint,
     kSeconds},
    {"waybill_stage_seconds", kHistogram, "seconds", "How long requests were in each stage.", kStage,
     kSeconds},
    {"waybill_timeouts_total",
     kCounter,
     "",
     "Requests whose deadline passed, by the stage they were in.",
     kStage,
     {}},
    {"waybill_degraded_decisions_total",
     kCounter,
     "",
     "Decisions by a cheaper tier because the encoder could not have answered in time.",
     {},
     {}},
    {"waybill_queue_tokens", kGauge, "tokens", "Tokens that wait for the encoder.", {}, {}},
    {"waybill_predicted_wait_seconds",
     kGauge,
     "seconds",
     "How long a request that came now would wait for the encoder.",
     {},
     {}},
    {"waybill_embedding_queue_tokens",
     kGauge,
     "tokens",
     "Tokens that wait for the encoder of embeddings; those of waybill_queue_tokens where one encoder serves "
     "both.",
     {},
     {}},
    {"waybill_waiting_texts",
     kGauge,
     "",
     "Long prompts, long bodies and batches that wait for a thread to read them.",
     {},
     {}},
    {"waybill_batch_sequences",
     kHistogram,
     "sequences",
     "Sequences in each batch of the encoder.",
     {},
     kSequences},
    {"waybill_batch_tokens", kHistogram, "tokens", "Tokens in each batch of the encoder.", {}, kTokens},
    {"waybill_cache_hits_total", kCounter, "", "Prompts found in the exact cache.", {}, {}},
    {"waybill_cache_misses_total",
     kCounter,
     "",
     "Prompts looked for in the exact cache and not found.",
     {},
     {}},
    {"waybill_event_loop_lag_seconds",
     kHistogram,
     "seconds",
     "How late an event loop came to a timer that was due, a sample for each loop and interval.",
     {},
     kSeconds},
    {"waybill_connections", kGauge, "", "Client connections that are open.", {}, {}},
    {"waybill_connections_total", kCounter, "", "Client connections that were accepted.", {}, {}},
    {"waybill_write_stalls_total",
     kCounter,
     "",
     "Connections ended because their client did not take its answer in time.",
     {},
     {}},
    {"waybill_handler_exceptions_total",
     kCounter,
     "",
     "Requests answered 500 because their handler threw. Each is a bug.",
     {},
     {}},
    {"waybill_ledger",
     kGauge,
     "",
     "The conservation ledger: accepted, and what became of it (completed, failed, rejected, cancelled, "
     "expired, "
     "in_flight).",
     kState,
     {}},
    {"waybill_ledger_imbalance",
     kGauge,
     "",
     "Accepted requests that the ledger cannot account for. Must be 0.",
     {},
     {}},
    {"waybill_upstream_calls_total",
     kCounter,
     "",
     "Calls to providers, by target and what became of them.",
     kTargetResult,
     {}},
    {"waybill_upstream_seconds", kHistogram, "seconds", "From a call to a provider to the end of its answer.",
     kTarget, kSeconds},
    {"waybill_upstream_first_token_seconds", kHistogram, "seconds",
     "From a call to a provider to the first content of its stream.", kTarget, kSeconds},
    {"waybill_retries_total",
     kCounter,
     "",
     "Calls that went to another target, or to the same again, by what had failed.",
     kReason,
     {}},
    {"waybill_retries_refused_total",
     kCounter,
     "",
     "Calls that might have gone on to another target, had the retry budget not been used up.",
     {},
     {}},
    {"waybill_target_state",
     kGauge,
     "",
     "Whether a target is called: 0 yes, 1 one call is out to look, 2 no.",
     kTarget,
     {}},
    {"waybill_provider_in_flight", kGauge, "", "Calls under way at a provider.", kProvider, {}},
    {"waybill_lane_waiting",
     kGauge,
     "",
     "Calls that wait for a provider's limits, by lane.",
     kProviderLane,
     {}},
    {"waybill_tokens_total",
     kCounter,
     "",
     "Tokens of calls to models, by kind (prompt, cached, completion).",
     kModelKind,
     {}},
    {"waybill_cost_usd_total",
     kCounter,
     "",
     "What calls to models cost by the price table, in US dollars.",
     kModel,
     {},
     1e-9},
    {"waybill_response_cache_total",
     kCounter,
     "",
     "Calls that need not go to a provider, by whether they did (hit, miss, shared, bypass, replayed).",
     kResult,
     {}},
    {"waybill_response_cache_bytes",
     kGauge,
     "bytes",
     "Memory of answers that are kept, or are being received to be kept.",
     {},
     {}},
    {"waybill_log_lines_dropped_total",
     kCounter,
     "",
     "Log lines dropped because their queue was full.",
     {},
     {}},
    {"waybill_file_lines_dropped_total",
     kCounter,
     "",
     "Waybills that are not in the waybill file: its queue was full, or the disk refused them.",
     {},
     {}},
    {"waybill_trace_spans_exported_total", kCounter, "", "Spans that the collector has taken.", {}, {}},
    {"waybill_trace_spans_dropped_total",
     kCounter,
     "",
     "Spans dropped because their queue was full or the collector would not take them.",
     {},
     {}},
    {"waybill_config_reloads_total",
     kCounter,
     "",
     "Configuration reloads, by result (ok, error).",
     kResult,
     {}},
    {"waybill_build_info", kGauge, "", "The build that runs, in labels; the value is always 1.", kBuild, {}},
    {"process_cpu_seconds_total",
     kCounter,
     "seconds",
     "CPU time of the process, user and system.",
     {},
     {},
     1e-6},
    {"process_resident_memory_bytes", kGauge, "bytes", "Resident memory of the process.", {}, {}},
    {"process_virtual_memory_bytes", kGauge, "bytes", "Virtual memory of the process.", {}, {}},
    {"process_open_fds", kGauge, "", "Open file descriptors.", {}, {}},
    {"process_max_fds", kGauge, "", "The most file descriptors that the process may open.", {}, {}},
    {"process_threads", kGauge, "", "Threads of the process.", {}, {}},
    {"process_start_time_seconds", kGauge, "seconds", "When the process was started, since 1970.", {}, {}},
});

}  // namespace

std::string_view to_string(MetricKind kind) noexcept {
  constexpr std::array<std::string_view, 3> kNames = {"counter", "gauge", "histogram"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::span<const MetricDescriptor> metric_catalog() noexcept { return kCatalog; }

}  // namespace waybill::telemetry
