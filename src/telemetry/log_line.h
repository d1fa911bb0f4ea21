// How an entry of the log is written.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "telemetry/log.h"
#include "telemetry/record.h"

namespace waybill::telemetry {

struct RequestLine {
  Record record;
  std::uint64_t left_out = 0;  // requests that completed since the last line for one, and have none
};

struct LogEntry {
  Level level = Level::kInfo;
  std::int64_t time_us = 0;                     // since 1970
  std::variant<std::string, RequestLine> what;  // an event as append_event() leaves it, or a request
};

// Message and fields of an event: in text `message name=value`, in JSON the members of the line after the
// level.
void append_event(std::string& out, std::string_view message, std::initializer_list<Field> fields, bool text);

// The whole line, without its end. In text without time and level, which the sink adds.
void append_json(std::string& out, const LogEntry& entry);
void append_text(std::string& out, const LogEntry& entry);

}  // namespace waybill::telemetry
