#include "api/reloader.h"

#include <chrono>
#include <vector>

#include <fmt/format.h>
#include <pthread.h>

#include "api/gateway.h"
#include "config/config.h"

namespace waybill::api {
namespace {

constexpr auto kLookAtFile = std::chrono::seconds(1);

// Listeners, limits, the store and telemetry are made once.
bool needs_a_restart(const config::Config& before, const config::Config& after) {
  const auto fixed = [](const config::Config& config) {
    config::Config part;
    part.server = config.server;
    part.telemetry = config.telemetry;
    part.store = config.store;
    return config::to_json(part);
  };
  return fixed(before) != fixed(after);
}

std::unexpected<Error> shutting_down() {
  return fail(ErrorCode::kShuttingDown, "The server is being stopped.");
}

}  // namespace

Reloader::Reloader(std::filesystem::path file, Load load, route::EngineOptions options, Gateway& gateway,
                   telemetry::Telemetry& telemetry)
    : file_(std::move(file)),
      load_(std::move(load)),
      options_(std::move(options)),
      gateway_(gateway),
      telemetry_(telemetry),
      loaded_(look()),
      seen_(loaded_) {}

void Reloader::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  std::deque<Done> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(waiting_);
  }
  for (Done& done : left) done(shutting_down());
}

void Reloader::start() {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "reload");
    run();
  });
}

void Reloader::request(Done done) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) {
      waiting_.push_back(std::move(done));
      wake_.notify_all();
      return;
    }
  }
  done(shutting_down());
}

Reloader::FileState Reloader::look() const {
  std::error_code ignored;
  FileState state;
  state.changed = std::filesystem::last_write_time(file_, ignored);
  state.size = std::filesystem::file_size(file_, ignored);
  return state;
}

void Reloader::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait_for(lock, kLookAtFile, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    std::deque<Done> asked = std::exchange(waiting_, {});
    lock.unlock();
    // A file that has not been the same for two looks may still be being written.
    const FileState before = std::exchange(seen_, look());
    const bool there = seen_.changed != std::filesystem::file_time_type::min();
    if (!asked.empty() || (there && seen_ != loaded_ && seen_ == before)) {
      loaded_ = seen_;
      const Result<std::string> result = reload();
      for (Done& done : asked) done(result);
    }
    lock.lock();
  }
}

Result<std::string> Reloader::reload() {
  telemetry::ProgramMetrics& metrics = telemetry_.metrics();
  const auto failed = [&](Error error) -> Result<std::string> {
    metrics.config_reloads.with({"error"}).add();
    telemetry_.log().error("the configuration was not reloaded; the one before stays in force",
                           {{"file", file_.string()}, {"why", error.message}});
    return std::unexpected(std::move(error));
  };
  Result<config::Config> config = load_();
  if (!config) return failed(config.error());
  const std::shared_ptr<const Deployment> before = gateway_.deployment();
  const bool needs_restart = needs_a_restart(before->config(), *config);
  Result<Keyring> keys = Keyring::load(config->keys);
  if (!keys) return failed(keys.error());
  Result<std::shared_ptr<const upstream::Catalog>> catalog =
      upstream::Catalog::make(*config, before->catalog.get());
  if (!catalog) return failed(catalog.error());
  Result<std::unique_ptr<route::Engine>> engine =
      route::load_engine(std::move(*config), options_, before->engine.get());
  if (!engine) return failed(engine.error());
  std::string message =
      fmt::format("{} is in force, with {} routes", file_.string(), (*engine)->routes().size());
  if (needs_restart) message += "; what it changes in server, store and telemetry needs a restart";
  gateway_.deploy(std::move(*engine), std::move(*catalog), std::move(*keys));
  metrics.config_reloads.with({"ok"}).add();
  telemetry_.log().info("the configuration was reloaded", {{"message_detail", message}});
  return message;
}

}  // namespace waybill::api
