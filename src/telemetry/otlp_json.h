// Waybills as OTLP trace data in its JSON form.
// https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "telemetry/record.h"

namespace waybill::telemetry {

// The spans of a record: one for the request, one for each stage it reached.
[[nodiscard]] std::uint64_t count_spans(const Record& record) noexcept;

// The body of one export. Attribute names: OpenTelemetry's semantic conventions where they have one, else
// waybill.*.
[[nodiscard]] std::string to_otlp_json(const std::deque<Record>& records, std::string_view service_name,
                                       std::string_view service_version);

// How many spans the collector says it did not take, from the body of its answer; 0 when it says nothing.
[[nodiscard]] std::uint64_t rejected_spans(std::string_view answer);

}  // namespace waybill::telemetry
