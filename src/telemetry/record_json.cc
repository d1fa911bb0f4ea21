#include "telemetry/record_json.h"

#include <algorithm>
#include <chrono>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace waybill::telemetry {
namespace {

template <std::size_t N>
void text(JsonWriter& json, std::string_view name, const InlineString<N>& value) {
  if (!value.empty()) json.key(name).string(value.view());
}

void write_stages(JsonWriter& json, const Record& record) {
  json.key("stages").begin_array();
  for (std::size_t i = 0; i < kStages; ++i) {
    const StageTime& time = record.stages[i];
    if (!time.reached()) continue;
    json.begin_object().key("stage").string(to_string(static_cast<Stage>(i)));
    json.key("start_us").integer(time.start_us).key("length_us").integer(time.length_us).end_object();
  }
  json.end_array();
}

void write_decision(JsonWriter& json, const Record& record) {
  json.key("decision").begin_object();
  json.key("route").string(record.route.view()).key("model").string(record.model.view());
  json.key("score").number(static_cast<double>(record.score)).key("tier").string(record.tier.view());
  json.key("degraded").boolean(record.degraded != 0).key("reason").string(record.reason.view()).end_object();
}

void write_upstream(JsonWriter& json, const Record& record) {
  text(json, "target", record.target);
  json.key("attempts").integer(record.attempts);
  json.key("prompt_tokens").integer(record.prompt_tokens);
  json.key("completion_tokens").integer(record.completion_tokens);
  json.key("cost_usd").number(static_cast<double>(record.cost_nano_usd) * 1e-9, 9);
}

bool traced(const Record& record) {
  return std::ranges::any_of(record.trace_id, [](std::uint8_t b) { return b != 0; });
}

}  // namespace

std::string format_time(std::int64_t us) {
  const std::chrono::sys_time<std::chrono::microseconds> time{std::chrono::microseconds(us)};
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  const auto rest = (time - second).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(second)),
                     rest);
}

void write_record_fields(JsonWriter& json, const Record& record) {
  json.key("id").string(to_string(record.id)).key("endpoint").string(record.endpoint.view());
  json.key("started").string(format_time(record.started_us));
  json.key("outcome").string(record.open ? std::string_view("in_flight") : to_string(record.outcome));
  if (!record.open) json.key("duration_us").integer(static_cast<std::int64_t>(record.duration_us));
  if (record.status != 0) json.key("status").integer(record.status);
  text(json, "request_id", record.request_id);
  text(json, "correlation_id", record.correlation_id);
  text(json, "caller", record.caller);
  if (traced(record)) {
    json.key("trace_id").string(to_hex(record.trace_id)).key("span_id").string(to_hex(record.span_id));
    json.key("sampled").boolean(record.sampled);
  }
  write_stages(json, record);
  if (record.decided) write_decision(json, record);
  if (!record.decided && record.degraded != 0) json.key("degraded").integer(record.degraded);
  if (record.tokens != 0) json.key("tokens").integer(record.tokens);
  if (record.attempts != 0 || !record.target.empty()) write_upstream(json, record);
  if (!record.error_code.empty()) {
    json.key("error").begin_object().key("code").string(record.error_code.view());
    json.key("message").string(record.error_message.view());
    json.key("stage").string(to_string(record.error_stage)).end_object();
  }
}

void write_record(JsonWriter& json, const Record& record) {
  json.begin_object();
  write_record_fields(json, record);
  json.end_object();
}

void write_ledger(JsonWriter& json, const Ledger& ledger) {
  json.begin_object().key("accepted").integer(static_cast<std::int64_t>(ledger.accepted));
  for (std::size_t i = 0; i < kOutcomes; ++i) {
    json.key(to_string(static_cast<Outcome>(i))).integer(static_cast<std::int64_t>(ledger.ended[i]));
  }
  json.key("in_flight").integer(static_cast<std::int64_t>(ledger.in_flight));
  json.key("balanced").boolean(ledger.imbalance() == 0);
  json.end_object();
}

std::string to_json(const Record& record) {
  std::string out;
  JsonWriter json(out);
  write_record(json, record);
  return out;
}

std::string to_json(const Ledger& ledger) {
  std::string out;
  JsonWriter json(out);
  write_ledger(json, ledger);
  return out;
}

}  // namespace waybill::telemetry
