#include "report.h"

#include <fstream>
#include <thread>

#include <fmt/core.h>

#include "base/cpu.h"
#include "base/json_writer.h"

namespace burst {
namespace {

void write_metrics(waybill::JsonWriter& json, const Metrics& m) {
  json.begin_object();
  for (const auto& [key, value] : m.all()) json.key(key).number(value);
  json.end_object();
}

}  // namespace

void print_table(const std::string& label, const Medians& rows) {
  fmt::print(
      "\n{:<10} {:<9} {:>6} {:>6} {:>8} {:>7} {:>7} {:>6} {:>8} {:>8} {:>8} {:>8} {:>6} {:>7} {:>7} {:>6}\n",
      "server", "scenario", "sent", "2xx", "degraded", "refused", "dropped", "broken", "p50 ms", "p95 ms",
      "p99 ms", "2xx/s", "right%", "server", "driver", "other");
  for (const auto& [name, m] : rows) {
    fmt::print(
        "{:<10} {:<9} {:>6.0f} {:>6.0f} {:>8.0f} {:>7.0f} {:>7.0f} {:>6.0f} {:>8.1f} {:>8.1f} {:>8.1f} "
        "{:>8.1f} {:>6.1f} {:>7.2f} {:>7.2f} {:>6.2f}\n",
        label, name, m.get("sent"), m.get("answered_2xx"), m.get("degraded"), m.get("refused"),
        m.get("dropped"), m.get("broken"), m.get("p50_ms"), m.get("p95_ms"), m.get("p99_ms"),
        m.get("answers_per_s"), 100 * m.get("right_share"), m.get("server_cores"), m.get("driver_cores"),
        m.get("other_cores"));
    if (name == "burst300") {
      fmt::print(
          "{:<20} spike of 300: p50 {:.0f}, p95 {:.0f}, max {:.0f} ms, dropped {:.0f}; the others: p95 "
          "{:.0f} ms, "
          "dropped {:.0f}\n",
          "", m.get("spike_p50_ms"), m.get("spike_p95_ms"), m.get("spike_max_ms"), m.get("spike_dropped"),
          m.get("spread_p95_ms"), m.get("spread_dropped"));
    }
    if (name == "ramp") fmt::print("{:<20} held {:.0f} requests/s\n", "", m.get("held_per_s"));
  }
  fmt::print("server, driver, other: cores in use by each (of {})\n", std::thread::hardware_concurrency());
}

bool write_json(const Options& options, const Medians& medians, const Runs& runs) {
  std::string text;
  waybill::JsonWriter json(text);
  json.begin_object();
  json.key("label").string(options.label);
  json.key("cpu").string(waybill::cpu_name());
  json.key("cores").integer(std::thread::hardware_concurrency());
  json.key("seed").integer(static_cast<std::int64_t>(options.seed));
  json.key("pool").integer(static_cast<std::int64_t>(options.pool));
  json.key("timeout_s").number(options.timeout_s);
  json.key("scenarios").begin_object();
  for (const auto& [name, median] : medians) {
    json.key(name).begin_object().key("median");
    write_metrics(json, median);
    json.key("runs").begin_array();
    for (const Metrics& run : runs.at(name)) write_metrics(json, run);
    json.end_array().end_object();
  }
  json.end_object().end_object();
  std::ofstream file(options.json_file);
  file << text << "\n";
  file.close();
  return file.good();
}

}  // namespace burst
