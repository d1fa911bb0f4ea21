#include "telemetry/otlp_json.h"

#include <algorithm>
#include <charconv>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/json_writer.h"
#include "telemetry/trace_context.h"

namespace waybill::telemetry {
namespace {

constexpr int kSpanKindInternal = 1;
constexpr int kSpanKindServer = 2;
constexpr int kStatusError = 2;

// 64-bit numbers are strings in the JSON form.
void integer_text(JsonWriter& json, std::int64_t value) { json.string(fmt::format("{}", value)); }

void attribute(JsonWriter& json, std::string_view key, std::string_view value) {
  if (value.empty()) return;
  json.begin_object().key("key").string(key).key("value").begin_object().key("stringValue").string(value);
  json.end_object().end_object();
}

void attribute(JsonWriter& json, std::string_view key, std::int64_t value) {
  json.begin_object().key("key").string(key).key("value").begin_object().key("intValue");
  integer_text(json, value);
  json.end_object().end_object();
}

void attribute(JsonWriter& json, std::string_view key, double value) {
  json.begin_object().key("key").string(key).key("value").begin_object().key("doubleValue").number(value);
  json.end_object().end_object();
}

void attribute(JsonWriter& json, std::string_view key, bool value) {
  json.begin_object().key("key").string(key).key("value").begin_object().key("boolValue").boolean(value);
  json.end_object().end_object();
}

void begin_span(JsonWriter& json, const Record& record, const SpanId& span, const SpanId& parent,
                std::string_view name, int kind, std::int64_t start_us, std::int64_t end_us) {
  json.begin_object().key("traceId").string(to_hex(record.trace_id)).key("spanId").string(to_hex(span));
  if (record.tracestate) json.key("traceState").string(*record.tracestate);
  if (std::ranges::any_of(parent, [](std::uint8_t b) { return b != 0; }))
    json.key("parentSpanId").string(to_hex(parent));
  json.key("flags").integer(1).key("name").string(name).key("kind").integer(kind);
  json.key("startTimeUnixNano");
  integer_text(json, start_us * 1000);
  json.key("endTimeUnixNano");
  integer_text(json, end_us * 1000);
}

void write_request_span(JsonWriter& json, const Record& r) {
  begin_span(json, r, r.span_id, r.parent_id, r.endpoint.view(), kSpanKindServer, r.started_us,
             r.started_us + static_cast<std::int64_t>(r.duration_us));
  json.key("attributes").begin_array();
  attribute(json, "http.route", r.endpoint.view());
  if (r.status != 0) attribute(json, "http.response.status_code", std::int64_t{r.status});
  attribute(json, "error.type", r.error_code.view());
  attribute(json, "waybill.id", to_string(r.id));
  attribute(json, "waybill.outcome", to_string(r.outcome));
  attribute(json, "waybill.request_id", r.request_id.view());
  attribute(json, "waybill.correlation_id", r.correlation_id.view());
  attribute(json, "waybill.caller", r.caller.view());
  if (r.decided) {
    attribute(json, "waybill.route", r.route.view());
    attribute(json, "waybill.model", r.model.view());
    attribute(json, "waybill.tier", r.tier.view());
    attribute(json, "waybill.reason", r.reason.view());
    attribute(json, "waybill.score", static_cast<double>(r.score));
    attribute(json, "waybill.degraded", r.degraded != 0);
  } else if (r.degraded != 0) {
    attribute(json, "waybill.degraded_decisions", std::int64_t{r.degraded});
  }
  if (r.tokens != 0) attribute(json, "waybill.tokens", std::int64_t{r.tokens});
  if (r.attempts != 0) {
    attribute(json, "waybill.target", r.target.view());
    attribute(json, "waybill.attempts", std::int64_t{r.attempts});
    attribute(json, "gen_ai.usage.input_tokens", std::int64_t{r.prompt_tokens});
    attribute(json, "gen_ai.usage.output_tokens", std::int64_t{r.completion_tokens});
    attribute(json, "waybill.cost_usd", static_cast<double>(r.cost_nano_usd) * 1e-9);
  }
  json.end_array();
  // A refusal that is the caller's doing is no error of the server (semantic conventions for HTTP spans).
  if (r.outcome == Outcome::kFailed || r.outcome == Outcome::kExpired || r.status >= 500) {
    json.key("status")
        .begin_object()
        .key("code")
        .integer(kStatusError)
        .key("message")
        .string(r.error_message.view());
    json.end_object();
  }
  json.end_object();
}

void write_stage_spans(JsonWriter& json, const Record& r) {
  for (std::size_t i = 0; i < kStages; ++i) {
    const StageTime& time = r.stages[i];
    if (!time.reached()) continue;
    const std::int64_t start_us = r.started_us + time.start_us;
    begin_span(json, r, new_span_id(), r.span_id, to_string(static_cast<Stage>(i)), kSpanKindInternal,
               start_us, start_us + time.length_us);
    json.end_object();
  }
}

}  // namespace

std::uint64_t count_spans(const Record& record) noexcept {
  return 1 + static_cast<std::uint64_t>(std::ranges::count_if(record.stages, &StageTime::reached));
}

std::string to_otlp_json(const std::deque<Record>& records, std::string_view service_name,
                         std::string_view service_version) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("resourceSpans").begin_array().begin_object();
  json.key("resource").begin_object().key("attributes").begin_array();
  attribute(json, "service.name", service_name);
  attribute(json, "service.version", service_version);
  json.end_array().end_object();
  json.key("scopeSpans").begin_array().begin_object();
  json.key("scope").begin_object().key("name").string("waybill").end_object();
  json.key("spans").begin_array();
  for (const Record& record : records) {
    write_request_span(json, record);
    write_stage_spans(json, record);
  }
  json.end_array().end_object().end_array().end_object().end_array().end_object();
  return out;
}

std::uint64_t rejected_spans(std::string_view answer) {
  boost::json::error_code error;
  const boost::json::value value =
      boost::json::parse(boost::json::string_view(answer.data(), answer.size()), error);
  if (error) return 0;
  const boost::json::object* object = value.if_object();
  const boost::json::value* partial = object != nullptr ? object->if_contains("partialSuccess") : nullptr;
  object = partial != nullptr ? partial->if_object() : nullptr;
  const boost::json::value* rejected = object != nullptr ? object->if_contains("rejectedSpans") : nullptr;
  if (rejected == nullptr) return 0;
  if (const std::int64_t* n = rejected->if_int64()) return *n > 0 ? static_cast<std::uint64_t>(*n) : 0;
  std::uint64_t n = 0;
  if (const boost::json::string* text = rejected->if_string())
    std::from_chars(text->data(), text->data() + text->size(), n);
  return n;
}

}  // namespace waybill::telemetry
