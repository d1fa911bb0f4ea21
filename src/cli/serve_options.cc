#include "cli/serve_options.h"

#include <algorithm>

#include "base/cpu.h"

namespace waybill::cli {
namespace {

telemetry::Level level_of(config::LogLevel level) noexcept {
  switch (level) {
    case config::LogLevel::kTrace:
      return telemetry::Level::kTrace;
    case config::LogLevel::kDebug:
      return telemetry::Level::kDebug;
    case config::LogLevel::kInfo:
      return telemetry::Level::kInfo;
    case config::LogLevel::kWarn:
      return telemetry::Level::kWarn;
    case config::LogLevel::kError:
      break;
  }
  return telemetry::Level::kError;
}

telemetry::LogFormat format_of(config::LogFormat format) noexcept {
  switch (format) {
    case config::LogFormat::kJson:
      return telemetry::LogFormat::kJson;
    case config::LogFormat::kText:
      return telemetry::LogFormat::kText;
    case config::LogFormat::kAuto:
      break;
  }
  return telemetry::LogFormat::kAuto;
}

// What the encoder computes with on this CPU, in a word.
std::string kernels() {
  const CpuFeatures& cpu = cpu_features();
  if (cpu.amx_bf16) return "amx";
  if (cpu.avx512_vnni) return "avx512_vnni";
  if (cpu.avx512) return "avx512";
  return cpu.avx_vnni ? "avx_vnni" : "avx2";
}

}  // namespace

telemetry::Options telemetry_options(const config::Config& config) {
  const config::Telemetry& from = config.telemetry;
  telemetry::Options to;
  to.version = WAYBILL_VERSION;
  to.kernels = kernels();
  to.waybills.keep = from.waybills.keep;
  to.waybills.max_bytes = from.waybills.max_bytes;
  to.log.level = level_of(from.log.level);
  to.log.format = format_of(from.log.format);
  to.log.healthy_per_second = static_cast<double>(from.log.healthy_per_second);
  to.file.path = from.waybills.file;
  to.file.max_bytes = from.waybills.rotate_bytes;
  to.file.keep = static_cast<unsigned>(from.waybills.rotate_keep);
  to.otlp.endpoint = from.traces.endpoint;
  to.otlp.sample_ratio = from.traces.sample_ratio;
  to.otlp.service_name = from.traces.service_name;
  // The setting counts spans, the queue requests, each with a span of its own and one for each stage.
  to.otlp.queue = std::max<std::size_t>(from.traces.max_queue / (1 + telemetry::kStages), 1);
  return to;
}

http::ServerOptions server_options(const config::Server& server) {
  http::ServerOptions options;
  for (const config::ListenAddress& address : server.listen) {
    options.listeners.push_back(
        {.address = address, .surface = http::Surface::kPublic, .tls = server.tls.enabled()});
  }
  for (const config::ListenAddress& address : server.admin_listen) {
    options.listeners.push_back(
        {.address = address, .surface = http::Surface::kAdmin, .tls = server.tls.enabled()});
  }
  if (server.tls.enabled()) {
    options.tls =
        http::TlsFiles{.certificate = server.tls.certificate, .private_key = server.tls.private_key};
  }
  options.threads = server.io_threads;
  options.busy_poll = std::chrono::microseconds(server.busy_poll_us);
  options.max_connections = server.max_connections;
  options.limits.parser = {.max_header_bytes = server.max_header_bytes,
                           .max_body_bytes = server.max_body_bytes};
  options.limits.max_total_body_bytes = server.max_total_body_bytes;
  options.limits.header_timeout = server.header_timeout;
  options.limits.body_timeout = server.body_timeout;
  options.limits.idle_timeout = server.idle_timeout;
  options.limits.write_timeout = server.write_timeout;
  return options;
}

}  // namespace waybill::cli
