// For tests/telemetry_services_test.py: ends requests as the server would, and writes what a scrape would
// get. usage: telemetry_probe ENDPOINT REQUESTS TEXT_FILE OPENMETRICS_FILE ENDPOINT is an OTLP collector.
// Prints {"ids": [...], "trace_id": ..., "exported": n, "dropped": n}.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "base/file.h"
#include "base/json_writer.h"
#include "telemetry/telemetry.h"

namespace {

using namespace waybill;
using namespace waybill::telemetry;

void end_one(Telemetry& telemetry, const Clock& clock, int i, JsonWriter& json) {
  const std::string_view parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const TimePoint start = clock.now();
  Waybill waybill = telemetry.waybills().open("/v1/route", start);
  waybill.request_id(fmt::format("probe-{} \"quoted\" \u00e9", i));
  waybill.trace(accept_trace({&parent, 1}, {}, telemetry.trace_sample_ratio()));
  waybill.decision({.route = "coding", .model = "qwen", .tier = "encoder", .reason = "score", .score = 0.5F});
  waybill.stage(Stage::kQueue, start, start + std::chrono::milliseconds(1));
  waybill.stage(Stage::kEncode, start + std::chrono::milliseconds(1), start + std::chrono::milliseconds(3));
  json.string(to_string(waybill.id()));
  if (i % 2 == 1) {
    waybill.fail({ErrorCode::kDeadlineExceeded, "the deadline passed", {}}, Stage::kEncode);
    waybill.close(Outcome::kExpired, 504);
  } else {
    waybill.close(Outcome::kCompleted, 200);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const SteadyClock clock;
  Options options{.version = "probe"};
  options.log.level = Level::kOff;
  options.otlp.endpoint = argv[1];
  options.otlp.interval = std::chrono::milliseconds(10);
  options.otlp.tries = 2;
  options.otlp.timeout = std::chrono::seconds(5);
  auto telemetry = Telemetry::start(options, clock);
  if (!telemetry) {
    std::fprintf(stderr, "%s\n", telemetry.error().message.c_str());
    return 1;
  }
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("ids").begin_array();
  for (int i = 0; i < std::atoi(argv[2]); ++i) end_one(**telemetry, clock, i, json);
  json.end_array();
  (*telemetry)->stop(std::chrono::seconds(20));
  Registry& registry = (*telemetry)->registry();
  if (!write_file_atomically(argv[3], registry.expose(Exposition::kPrometheusText))) return 1;
  if (!write_file_atomically(argv[4], registry.expose(Exposition::kOpenMetrics))) return 1;
  const auto number = [](const Counter& counter) { return static_cast<std::int64_t>(counter.value()); };
  json.key("exported").integer(number((*telemetry)->metrics().trace_spans_exported));
  json.key("dropped").integer(number((*telemetry)->metrics().trace_spans_dropped)).end_object();
  std::puts(out.c_str());
}
