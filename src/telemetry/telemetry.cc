#include "telemetry/telemetry.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>

#include "telemetry/metrics_sink.h"
#include "telemetry/process_metrics.h"

namespace waybill::telemetry {
namespace {

std::string_view compiler() {
#ifdef __clang__
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

}  // namespace

struct Telemetry::Impl {
  explicit Impl(const Options& o) : options(o), metrics(registry), sink(metrics) {}

  void start(const Clock& clock);
  Ledger check_ledger();
  void copy_counts();
  void tell_of_losses();
  void run_checker();
  void end_checker();

  const Options options;
  Registry registry;
  ProgramMetrics metrics;
  MetricsSink sink;
  std::unique_ptr<Log> log;
  std::unique_ptr<WaybillFile> file;       // null: none
  std::unique_ptr<OtlpExporter> exporter;  // null: none
  std::unique_ptr<WaybillBook> book;
  Registry::Hook process_hook, own_hook;

  // Of the checker alone: what has been told already.
  std::uint64_t told_log = 0, told_file = 0, told_spans = 0;
  std::int64_t told_imbalance = 0;

  std::mutex mutex;  // guards stopping
  std::condition_variable told;
  bool stopping = false;
  std::thread checker;
};

void Telemetry::Impl::start(const Clock& clock) {
  std::vector<WaybillSink*> sinks = {&sink, log.get()};
  if (file) sinks.push_back(file.get());
  if (exporter) sinks.push_back(exporter.get());
  book = std::make_unique<WaybillBook>(options.waybills, clock, std::move(sinks));
  metrics.build_info.with({options.version, compiler(), options.kernels}).set(1);
  for (const std::string_view result : {"ok", "error"}) (void)metrics.config_reloads.with({result});
  process_hook = add_process_metrics(registry);
  own_hook = registry.on_scrape([this] { copy_counts(); });
  checker = std::thread([this] { run_checker(); });
  pthread_setname_np(checker.native_handle(), "ledger");
}

Ledger Telemetry::Impl::check_ledger() {
  const Ledger ledger = book->ledger();
  const auto set = [this](std::string_view state, std::uint64_t value) {
    metrics.ledger.with({state}).set(static_cast<double>(value));
  };
  set("accepted", ledger.accepted);
  for (std::size_t i = 0; i < kOutcomes; ++i) set(to_string(static_cast<Outcome>(i)), ledger.ended[i]);
  set("in_flight", ledger.in_flight);
  metrics.ledger_imbalance.set(static_cast<double>(ledger.imbalance()));
  return ledger;
}

void Telemetry::Impl::copy_counts() {
  check_ledger();
  metrics.log_lines_dropped.set(log->dropped());
  if (file) metrics.file_lines_dropped.set(file->dropped());
  if (exporter) {
    metrics.trace_spans_exported.set(exporter->exported());
    metrics.trace_spans_dropped.set(exporter->dropped());
  }
}

// Losses are told when they grow, so that a line says when it happened and not only that it did.
void Telemetry::Impl::tell_of_losses() {
  const auto grown = [](std::uint64_t now, std::uint64_t& before) {
    return now - std::exchange(before, now);
  };
  if (const std::uint64_t n = grown(log->dropped(), told_log); n > 0)
    log->warn("log lines dropped", {{"lines", n}});
  if (file) {
    if (const std::uint64_t n = grown(file->dropped(), told_file); n > 0)
      log->warn("waybills are missing in the waybill file", {{"lines", n}, {"reason", file->last_error()}});
  }
  if (exporter) {
    if (const std::uint64_t n = grown(exporter->dropped(), told_spans); n > 0)
      log->warn("trace spans dropped", {{"spans", n}, {"reason", exporter->last_error()}});
  }
}

void Telemetry::Impl::run_checker() {
  std::unique_lock lock(mutex);
  while (!told.wait_for(lock, options.check_interval, [this] { return stopping; })) {
    lock.unlock();
    book->refresh_wall_clock();
    const std::int64_t imbalance = check_ledger().imbalance();
    if (imbalance != 0 && imbalance != told_imbalance)
      log->error("the ledger does not balance; this is a bug, please report it", {{"imbalance", imbalance}});
    told_imbalance = imbalance;
    tell_of_losses();
    lock.lock();
  }
}

void Telemetry::Impl::end_checker() {
  {
    const std::scoped_lock lock(mutex);
    stopping = true;
  }
  told.notify_all();
  if (checker.joinable()) checker.join();
}

Telemetry::Telemetry(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Telemetry::~Telemetry() { stop(std::chrono::seconds(1)); }

Result<std::unique_ptr<Telemetry>> Telemetry::start(const Options& options, const Clock& clock) {
  auto impl = std::make_unique<Impl>(options);
  auto log = Log::make(options.log);
  if (!log) return std::unexpected(std::move(log).error());
  impl->log = *std::move(log);
  if (!options.file.path.empty()) {
    auto file = WaybillFile::open(options.file);
    if (!file) return std::unexpected(std::move(file).error());
    impl->file = *std::move(file);
  }
  if (!options.otlp.endpoint.empty()) {
    OtlpOptions otlp = options.otlp;
    if (otlp.service_version.empty()) otlp.service_version = options.version;
    auto exporter = OtlpExporter::make(otlp);
    if (!exporter) return std::unexpected(std::move(exporter).error());
    impl->exporter = *std::move(exporter);
  }
  impl->start(clock);
  return std::unique_ptr<Telemetry>(new Telemetry(std::move(impl)));
}

WaybillBook& Telemetry::waybills() noexcept { return *impl_->book; }
Log& Telemetry::log() noexcept { return *impl_->log; }
Registry& Telemetry::registry() noexcept { return impl_->registry; }
ProgramMetrics& Telemetry::metrics() noexcept { return impl_->metrics; }
double Telemetry::trace_sample_ratio() const noexcept {
  return impl_->exporter ? impl_->options.otlp.sample_ratio : 0;
}
Ledger Telemetry::check_ledger() { return impl_->check_ledger(); }

void Telemetry::stop(Duration bound) {
  const TimePoint end = std::chrono::steady_clock::now() + bound;
  const auto left = [end] { return std::max(end - std::chrono::steady_clock::now(), Duration::zero()); };
  impl_->end_checker();
  // The last to be stopped has a share kept for it, or a dead collector would take the last lines of the log
  // along.
  if (impl_->exporter) impl_->exporter->stop(left() / 2);
  if (impl_->file) impl_->file->stop(left() / 2);
  impl_->tell_of_losses();
  impl_->log->stop(left());
}

}  // namespace waybill::telemetry
