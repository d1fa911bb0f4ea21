// `waybill serve`: the gateway.
#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "api/gateway.h"
#include "api/openapi.h"
#include "api/reloader.h"
#include "base/blocked_signals.h"
#include "base/process.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/locate.h"
#include "cli/serve_jobs.h"
#include "cli/serve_options.h"
#include "cli/terminal.h"
#include "http/server.h"
#include "route/engine.h"
#include "telemetry/telemetry.h"
#include "upstream/health_prober.h"

namespace waybill::cli {
namespace {

struct ServeOptions {
  std::string config;
  std::vector<std::string> listen;
};

// Time for what is left when the drain timeout has passed: answers that say so, and then the ends of
// connections.
constexpr Duration kLastAnswers = std::chrono::seconds(2);
constexpr Duration kLookForSignals = std::chrono::milliseconds(100);
constexpr Duration kLookForJobs = std::chrono::milliseconds(10);
constexpr Duration kFlush = std::chrono::seconds(2);
// Descriptors besides the clients' connections: models, logs, listeners, refused connections, a collector.
constexpr std::uint64_t kOtherDescriptors = 1024;
// Where descriptors are few: one of so many is left to calls to providers. Other connections are idle, or
// wait for jobs.
constexpr std::uint64_t kShareOfCalls = 4;

// What the command line says, over what the file says.
Result<config::Config> with_options(Result<config::Config> config, const ServeOptions& options) {
  if (!config || options.listen.empty()) return config;
  config->server.listen.clear();
  for (const std::string& text : options.listen) {
    auto address = config::parse_listen_address(text);
    if (!address)
      return fail(ErrorCode::kInvalidInput, fmt::format("--listen {}: {}", text, address.error().message));
    if (!address->is_local() && config->keys.empty() && !config->server.insecure) {
      return fail(
          ErrorCode::kInvalidInput,
          fmt::format("--listen {}: without keys the server listens on this machine only; add keys, or say "
                      "server.insecure: true",
                      text));
    }
    config->server.listen.push_back(std::move(*address));
  }
  return config;
}

// The file once more, while the server runs: what is wrong goes into its log.
Result<config::Config> reload_config(const std::filesystem::path& file, const ServeOptions& options) {
  auto config = config::load(file);
  if (!config) return fail(ErrorCode::kInvalidInput, config.error().text());
  return with_options(std::move(*config), options);
}

// Everything that serves, in the order in which it is built; destruction is the other way round.
class Serving {
 public:
  Serving(std::filesystem::path file, const ServeOptions& options, telemetry::Telemetry& telemetry)
      : file_(std::move(file)), options_(options), telemetry_(telemetry) {}

  Status start(config::Config config) {
    const config::Server server = config.server;
    drain_timeout_ = server.drain_timeout;
    const std::size_t connections =
        make_room_for_connections(server.max_connections, !config.providers.empty());
    Result<api::Keyring> keys = api::Keyring::load(config.keys);
    if (!keys) return std::unexpected(keys.error());
    Result<std::shared_ptr<const upstream::Catalog>> catalog = upstream::Catalog::make(config, nullptr);
    if (!catalog) return std::unexpected(catalog.error());
    Result<std::unique_ptr<ServedJobs>> jobs = ServedJobs::open(config, telemetry_);
    if (!jobs) return std::unexpected(jobs.error());
    jobs_ = std::move(*jobs);
    ProgressLine progress;
    route::EngineOptions engine_options;
    engine_options.decision_batch_observer = [this](const route::ComputedBatch& batch) {
      telemetry_.metrics().batch_sequences.observe(static_cast<double>(batch.sequences));
      telemetry_.metrics().batch_tokens.observe(static_cast<double>(batch.tokens));
    };
    route::EngineOptions first = engine_options;
    first.progress = progress.reporter();
    Result<std::unique_ptr<route::Engine>> engine = route::load_engine(std::move(config), first);
    progress.clear();
    if (!engine) return std::unexpected(engine.error());
    for (const std::string& note : (*engine)->notes()) telemetry_.log().warn(note);
    gateway_.emplace(telemetry_, std::move(*engine), std::move(*catalog), std::move(*keys),
                     api::GatewayOptions{.separate_admin = !server.admin_listen.empty()});
    reloader_.emplace(
        file_, [this] { return reload_config(file_, options_); }, std::move(engine_options), *gateway_,
        telemetry_);
    http::ServerOptions options = server_options(server);
    options.max_connections = connections;
    observe(options);
    server_.emplace(std::move(options), *gateway_);
    if (Status listening = server_->listen(); !listening) return listening;
    gateway_->attach(*server_, *reloader_);
    if (jobs_) {
      if (Status restored = jobs_->restore(*gateway_); !restored) return restored;
    }
    server_->start();
    if (jobs_) {
      gateway_->on_deployed([this](const config::Config& deployed) { jobs_->configure(deployed.jobs); });
      const std::shared_ptr<const api::Deployment> first_deployment = gateway_->deployment();
      if (Status started = jobs_->start(*gateway_, *server_, first_deployment->config().jobs); !started) {
        jobs_->stop();
        return started;
      }
    }
    reloader_->start();
    prober_.emplace(server_->loop(0), gateway_->dispatcher().resolver(),
                    [this] { return gateway_->deployment()->catalog; });
    prober_->start();
    release_free_memory();      // of loading
    (void)api::openapi_page();  // made here and not by an event loop, at the first GET /docs
    const std::string scheme = server.tls.enabled() ? "https://" : "http://";
    for (const std::string& address : server_->addresses()) {
      const bool is_url = !address.starts_with("unix:") && !address.starts_with("systemd:");
      telemetry_.log().info("listening", {{"address", is_url ? scheme + address : address}});
    }
    return {};
  }

  // Until SIGTERM or SIGINT; SIGHUP reloads.
  void wait(const sigset_t& signals) {
    for (;;) {
      int signal = 0;
      if (::sigwait(&signals, &signal) != 0) continue;
      if (signal != SIGHUP) {
        telemetry_.log().info("stopping", {{"signal", signal == SIGTERM ? "SIGTERM" : "SIGINT"},
                                           {"drain_timeout_seconds", seconds(drain_timeout_)}});
        return;
      }
      reloader_->request([](const Result<std::string>&) {});  // the log says what came of it
    }
  }

  // In stages: no new connections; what is under way ends; the rest is told so; then everything ends. Another
  // SIGTERM or SIGINT ends the waiting for what is under way.
  void stop(const sigset_t& signals) {
    gateway_->start_draining();
    if (jobs_) jobs_->stop_claiming();
    const auto now = std::chrono::steady_clock::now;
    const TimePoint end = now() + drain_timeout_;
    bool drained = false, hurried = false;
    do {
      drained = server_->drain(std::min(end, now() + kLookForSignals)) && jobs_end(now() + kLookForSignals);
      hurried = another_stop(signals);
    } while (!drained && !hurried && now() < end);
    if (!drained) {
      telemetry_.log().warn(hurried ? "told to stop once more: what is under way is told so"
                                    : "some requests did not end in time and are told so",
                            {{"connections", server_->stats().connections}});
      reloader_->stop();
      gateway_->stop_deciding();
      (void)server_->drain(now() + kLastAnswers);
    }
    reloader_->stop();
    prober_->stop();
    if (jobs_) jobs_->stop();
    gateway_->stop();
    server_->stop();
  }

 private:
  // Whether the jobs that run end by then.
  [[nodiscard]] bool jobs_end(TimePoint deadline) const {
    while (jobs_ && !jobs_->is_idle()) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      std::this_thread::sleep_for(kLookForJobs);
    }
    return true;
  }

  static bool another_stop(const sigset_t& signals) {
    constexpr timespec kNow{};
    for (;;) {
      const int signal = ::sigtimedwait(&signals, nullptr, &kNow);
      if (signal != SIGHUP) return signal > 0;  // a reload would come too late
    }
  }

  // Each connection is a descriptor, and another one where a provider is called for it; the limit that shells
  // set (1,024) is far below that. How many there is room for: those beyond are refused, since without
  // descriptors they would only wait.
  std::size_t make_room_for_connections(std::size_t connections, bool calls_providers) {
    const std::uint64_t each = calls_providers ? 2 : 1;
    const std::uint64_t wanted = each * connections + kOtherDescriptors;
    const std::uint64_t got = raise_descriptor_limit(wanted);
    if (got >= wanted) return connections;
    const std::uint64_t free = got - std::min(kOtherDescriptors, got / 2);
    const std::uint64_t for_calls = calls_providers ? free / kShareOfCalls : 0;
    const std::uint64_t room = std::clamp<std::uint64_t>(free - for_calls, 1, connections);
    if (room == connections) return connections;
    telemetry_.log().warn(
        "fewer connections can be held than server.max_connections allows: the system's limit of open files "
        "is too "
        "low; raise it (LimitNOFILE= in a systemd unit, ulimit -Hn) or lower max_connections",
        {{"max_connections", connections},
         {"connections_held", room},
         {"open_files_limit", got},
         {"open_files_needed", wanted}});
    return room;
  }

  void observe(http::ServerOptions& options) {
    options.on_lag = [this](unsigned /*loop*/, Duration lag) {
      telemetry_.metrics().event_loop_lag_seconds.observe(seconds(lag));
    };
    options.on_stall = [this](const http::Stall& stall) {
      telemetry_.log().warn(
          "an event loop does not come back to its events",
          {{"loop", stall.loop}, {"seconds", seconds(stall.length)}, {"doing", stall.doing}});
    };
    options.on_shortage = [this] {
      telemetry_.log().error(
          "connections wait to be accepted: the system has no descriptor or memory left for them; raise the "
          "limit of "
          "open files (LimitNOFILE= in a systemd unit, ulimit -n) or lower server.max_connections");
    };
    options.on_full = [this, most = options.max_connections] {
      telemetry_.log().warn("connections are refused: as many as are held are open (server.max_connections)",
                            {{"connections_held", most}});
    };
    options.on_standstill = [this](Duration length) {
      telemetry_.log().warn(
          "nothing of the program ran for a while: it was stopped, or the machine had no processor for it",
          {{"seconds", seconds(length)}});
    };
    options.on_tls_reload = [this](const Status& status) {
      if (status) {
        telemetry_.log().info("the certificate was changed");
      } else {
        telemetry_.log().error("the changed certificate cannot be used; the one before stays in use",
                               {{"why", status.error().message}});
      }
    };
  }

  const std::filesystem::path file_;
  const ServeOptions& options_;
  telemetry::Telemetry& telemetry_;
  Duration drain_timeout_{};
  std::unique_ptr<ServedJobs> jobs_;  // null: there are none
  std::optional<api::Gateway> gateway_;
  std::optional<api::Reloader> reloader_;
  std::optional<http::Server> server_;
  std::optional<upstream::HealthProber> prober_;
};

Outcome run_serve(const ServeOptions& options) {
  const Result<std::filesystem::path> file = find_config(options.config);
  if (!file) return std::unexpected(file.error());
  Result<config::Config> config = with_options(load_config(file->string()), options);
  if (!config) return std::unexpected(config.error());
  keep_no_large_free_blocks();
  std::signal(SIGPIPE, SIG_IGN);  // a client that has gone is an error of its write
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  const BlockedSignals blocked;  // they are taken by sigwait() here, and by no other thread
  const SteadyClock clock;
  auto telemetry = telemetry::Telemetry::start(telemetry_options(*config), clock);
  if (!telemetry) return std::unexpected(telemetry.error());
  {
    Serving serving(*file, options, **telemetry);
    if (Status started = serving.start(std::move(*config)); !started) {
      (*telemetry)->stop(kFlush);
      return std::unexpected(started.error());
    }
    serving.wait(signals);
    serving.stop(signals);
  }
  const telemetry::Ledger ledger = (*telemetry)->check_ledger();
  (*telemetry)->log().info("stopped", {{"accepted", ledger.accepted}, {"imbalance", ledger.imbalance()}});
  (*telemetry)->stop(kFlush);
  return ExitCode::kDone;
}

}  // namespace

void add_serve(CLI::App& app) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App& command = add_command(
      app,
      {.name = "serve",
       .summary = "answer over HTTP",
       .details =
           "Serves decisions (/route), calls to models (/v1/chat/completions, /v1/embeddings), jobs "
           "(/v1/jobs), and what tells of them (/metrics, /v1/requests, /v1/ledger); /docs describes them "
           "all. SIGHUP, or a change of the file, puts "
           "another configuration into force without losing a request; SIGTERM and SIGINT finish what is "
           "under way (server.drain_timeout) and end.",
       .examples = "waybill serve\n"
                   "waybill serve --config support.yaml --listen 127.0.0.1:8080\n"
                   "curl -d '{\"prompt\": \"what is the refund policy?\"}' http://127.0.0.1:8000/route"});
  add_config_option(command, options->config);
  command
      .add_option(
          "--listen", options->listen,
          "Where to listen, instead of server.listen: HOST:PORT, unix:PATH or systemd; may be given again")
      ->type_name("ADDRESS");
  set_action(command, [options] { return run_serve(*options); });
}

}  // namespace waybill::cli
