#include "telemetry/log_line.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/json_writer.h"
#include "base/utf8.h"
#include "telemetry/record_json.h"

namespace waybill::telemetry {
namespace {

struct JsonValue {
  JsonWriter& json;
  void operator()(std::string_view v) const { json.string(v); }
  void operator()(std::int64_t v) const { json.integer(v); }
  void operator()(double v) const { json.number(v); }
  void operator()(bool v) const { json.boolean(v); }
};

// Words stand as they are; what has blanks, quotes or control characters (which could move the cursor of the
// terminal it is shown on) is quoted as JSON does.
struct TextValue {
  std::string& out;
  void operator()(std::string_view v) const {
    const auto plain = [](char c) { return c > 0x20 && c != '"' && c != '=' && c != '\\' && c != 0x7F; };
    if (!v.empty() && std::ranges::all_of(v, plain)) {
      out += v;
    } else {
      JsonWriter(out).string(v);
    }
  }
  void operator()(std::int64_t v) const { fmt::format_to(std::back_inserter(out), "{}", v); }
  void operator()(double v) const { fmt::format_to(std::back_inserter(out), "{:.6g}", v); }
  void operator()(bool v) const { out += v ? "true" : "false"; }
};

void pair(std::string& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  out += ' ';
  out += name;
  out += '=';
  TextValue{out}(value);
}

void append_request_text(std::string& out, const RequestLine& line) {
  const Record& r = line.record;
  fmt::format_to(std::back_inserter(out), "{} {} {} {:.3f} ms", r.endpoint.view(), r.status,
                 to_string(r.outcome), static_cast<double>(r.duration_us) / 1000);
  if (r.decided) {
    pair(out, "route", r.route.view());
    pair(out, "tier", r.tier.view());
    if (r.degraded) out += " degraded";
  }
  pair(out, "target", r.target.view());
  if (r.attempts > 1) fmt::format_to(std::back_inserter(out), " attempts={}", r.attempts);
  if (!r.error_code.empty()) {
    pair(out, "stage", to_string(r.error_stage));
    pair(out, "error", r.error_code.view());
    pair(out, "message", r.error_message.view());
  }
  pair(out, "caller", r.caller.view());
  pair(out, "id", to_string(r.id));
  if (line.left_out > 0) fmt::format_to(std::back_inserter(out), " left_out={}", line.left_out);
}

}  // namespace

void append_event(std::string& out, std::string_view message, std::initializer_list<Field> fields,
                  bool text) {
  if (text) {
    out += to_valid_utf8(message);
    for (const Field& field : fields) {
      out += ' ';
      out += field.name;
      out += '=';
      std::visit(TextValue{out}, field.value);
    }
    return;
  }
  JsonWriter json(out);
  json.key("message").string(message);
  for (const Field& field : fields) {
    json.key(field.name);
    std::visit(JsonValue{json}, field.value);
  }
}

void append_json(std::string& out, const LogEntry& entry) {
  JsonWriter json(out);
  json.begin_object()
      .key("time")
      .string(format_time(entry.time_us))
      .key("level")
      .string(to_string(entry.level));
  if (const auto* event = std::get_if<std::string>(&entry.what)) {
    out += ',';
    out += *event;
  } else {
    const auto& line = std::get<RequestLine>(entry.what);
    json.key("message").string("request");
    write_record_fields(json, line.record);
    if (line.left_out > 0) json.key("left_out").integer(static_cast<std::int64_t>(line.left_out));
  }
  json.end_object();
}

void append_text(std::string& out, const LogEntry& entry) {
  if (const auto* event = std::get_if<std::string>(&entry.what)) {
    out += *event;
  } else {
    append_request_text(out, std::get<RequestLine>(entry.what));
  }
}

}  // namespace waybill::telemetry
