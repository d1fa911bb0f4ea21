// A waybill as JSON, as GET /v1/requests/{id} and the waybill file have it. docs/waybills.md is the format.
#pragma once

#include <string>

#include "base/json_writer.h"
#include "telemetry/record.h"
#include "telemetry/waybill_book.h"

namespace waybill::telemetry {

void write_record(JsonWriter& json, const Record& record);
// The same without the braces, for a line that says more.
void write_record_fields(JsonWriter& json, const Record& record);
void write_ledger(JsonWriter& json, const Ledger& ledger);
[[nodiscard]] std::string to_json(const Record& record);
[[nodiscard]] std::string to_json(const Ledger& ledger);

// "2026-01-31T12:00:00.123456Z"
[[nodiscard]] std::string format_time(std::int64_t us_since_1970);

}  // namespace waybill::telemetry
