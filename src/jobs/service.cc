#include "jobs/service.h"

#include <algorithm>
#include <chrono>
#include <latch>
#include <map>
#include <mutex>
#include <string>

#include "base/worker_pool.h"
#include "jobs/job_metrics.h"
#include "jobs/runner.h"
#include "jobs/store_watch.h"

namespace waybill::jobs {
namespace {

constexpr unsigned kReaders = 2;
constexpr std::size_t kMostWaitingReads = 1024;
// After drain() has told what runs to end: it writes that it did.
constexpr Duration kLastWrites = std::chrono::seconds(5);

}  // namespace

store::Time store_now() noexcept {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

struct Service::Impl {
  Impl(store::Store& to, const config::Store& of, const config::Jobs& jobs, telemetry::Telemetry& with)
      : store(to),
        telemetry(with),
        metrics(telemetry.metrics()),
        watch(telemetry.log(), of.path),
        readers({.name = "store-read", .threads = kReaders, .max_waiting = kMostWaitingReads}),
        writer(store, {.max_waiting = of.max_waiting,
                       .on_changes = [this](auto changes) { on_changes(changes); },
                       .on_commit = [this](std::size_t commands,
                                           Duration length) { metrics.committed(commands, length); }}) {
    configure(jobs);
    on_scrape = telemetry.registry().on_scrape([this] {
      telemetry.metrics().store_writable.with({}).set(writer.is_writable() ? 1 : 0);
      telemetry.metrics().store_waiting.set(static_cast<double>(writer.waiting()));
    });
  }

  void configure(const config::Jobs& jobs) {
    const auto made = std::make_shared<const config::Jobs>(jobs);
    std::map<std::string, std::shared_ptr<const config::JobQueue>, std::less<>> by_name;
    for (const config::JobQueue& queue : made->queues)
      by_name.emplace(queue.name, std::shared_ptr<const config::JobQueue>(made, &queue));
    const std::lock_guard lock(mutex);
    settings = made;
    queues = std::move(by_name);
  }

  // On the writer's thread.
  void on_changes(std::span<const store::Change> changes) {
    metrics.count(changes);
    hub.publish(changes);
    if (const auto at = current_runner()) at->on_changes(changes);
  }

  [[nodiscard]] std::shared_ptr<Runner> current_runner() const {
    const std::lock_guard lock(mutex);
    return runner;
  }

  void refresh_depths() {
    (void)readers.post([this] {
      const auto depths = store.depths();
      const auto states = store.queues();
      if (depths && states) metrics.set_depths(*depths, *states, store_now());
    });
  }

  // Jobs that nobody will run: those of queues that the configuration does not have.
  void warn_of_stranded_jobs() {
    (void)readers.post([this] {
      const auto depths = store.depths();
      if (!depths) return;
      std::map<std::string, std::uint64_t, std::less<>> stranded;
      {
        const std::lock_guard lock(mutex);
        for (const store::Depth& each : *depths) {
          if (is_terminal(each.state) || each.jobs == 0 || each.queue == kCallQueue) continue;
          if (!queues.contains(each.queue)) stranded[each.queue] += each.jobs;
        }
      }
      for (const auto& [queue, jobs] : stranded) {
        telemetry.log().warn("jobs wait in a queue that is not configured: nobody will run them",
                             {{"queue", queue}, {"jobs", jobs}});
      }
    });
  }

  store::Store& store;
  telemetry::Telemetry& telemetry;
  JobMetrics metrics;
  StoreWatch watch;
  Hub hub;

  mutable std::mutex mutex;  // guards the next three
  std::shared_ptr<const config::Jobs> settings;
  std::map<std::string, std::shared_ptr<const config::JobQueue>, std::less<>> queues;
  std::shared_ptr<Runner> runner;

  std::vector<http::EventLoop*> loops;
  WorkerPool readers;
  store::Writer writer;
  telemetry::Registry::Hook on_scrape;
};

Service::Service(store::Store& store, const config::Store& settings, const config::Jobs& jobs,
                 telemetry::Telemetry& telemetry)
    : impl_(std::make_unique<Impl>(store, settings, jobs, telemetry)) {}

Service::~Service() { stop(); }

void Service::start(Performer& performer, std::vector<http::EventLoop*> loops) {
  impl_->loops = loops;
  RunnerOptions options;
  options.wall = store_now;
  options.refresh = [this] { impl_->refresh_depths(); };
  options.watch = &impl_->watch;
  auto runner = std::make_shared<Runner>(impl_->writer, impl_->metrics, impl_->telemetry.log(), performer,
                                         std::move(loops), std::move(options));
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->runner = runner;
  }
  runner->start(settings());
  impl_->warn_of_stranded_jobs();
}

void Service::configure(const config::Jobs& jobs) {
  impl_->configure(jobs);
  if (const auto runner = impl_->current_runner()) runner->configure(settings());
  impl_->warn_of_stranded_jobs();
}

void Service::stop_claiming() {
  if (const auto runner = impl_->current_runner()) runner->stop_claiming();
}

bool Service::is_idle() const {
  const auto runner = impl_->current_runner();
  return runner == nullptr || runner->is_idle();
}

bool Service::drain(TimePoint deadline) {
  const auto runner = impl_->current_runner();
  if (runner == nullptr) return true;
  runner->stop_claiming();
  if (runner->wait_idle(deadline)) return true;
  runner->interrupt();
  if (!is_writable()) return false;  // nothing could be written down
  return runner->wait_idle(std::chrono::steady_clock::now() + kLastWrites);
}

void Service::stop() {
  std::shared_ptr<Runner> runner;
  {
    const std::lock_guard lock(impl_->mutex);
    runner = std::exchange(impl_->runner, nullptr);
  }
  if (runner != nullptr) runner->stop();
  impl_->readers.stop();
  impl_->writer.stop();
  if (runner == nullptr) return;
  // Replies that are on their way to the loops still come.
  std::latch told(static_cast<std::ptrdiff_t>(impl_->loops.size()));
  for (http::EventLoop* loop : impl_->loops) loop->post([&told] { told.count_down(); });
  told.wait();
}

std::shared_ptr<const config::JobQueue> Service::queue(std::string_view name) const {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->queues.find(name);
  return found != impl_->queues.end() ? found->second : nullptr;
}

std::vector<std::shared_ptr<const config::JobQueue>> Service::queues() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<std::shared_ptr<const config::JobQueue>> all;
  for (const config::JobQueue& queue : impl_->settings->queues) all.emplace_back(impl_->settings, &queue);
  return all;
}

std::shared_ptr<const config::Jobs> Service::settings() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->settings;
}

void Service::failed(const Error& error) { impl_->watch.failed(error); }

Hub& Service::hub() noexcept { return impl_->hub; }

store::Writer& Service::writer() noexcept { return impl_->writer; }

bool Service::is_writable() const noexcept { return impl_->writer.is_writable(); }

Status Service::on_reader(std::move_only_function<void(store::Store&)> work) {
  if (impl_->readers.post([this, work = std::move(work)]() mutable { work(impl_->store); })) return {};
  return fail(ErrorCode::kOverloaded, "too many look-ups wait for the store; try again later");
}

}  // namespace waybill::jobs
