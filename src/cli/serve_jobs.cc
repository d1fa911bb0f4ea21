#include "cli/serve_jobs.h"

#include <chrono>
#include <utility>
#include <vector>

#include "api/job_json.h"
#include "api/lease_tokens.h"
#include "store/sqlite/sqlite_store.h"

namespace waybill::cli {
namespace {

constexpr Duration kLastDeliveries = std::chrono::seconds(1);

TimePoint now() noexcept { return std::chrono::steady_clock::now(); }

}  // namespace

Result<std::unique_ptr<ServedJobs>> ServedJobs::open(const config::Config& config,
                                                     telemetry::Telemetry& telemetry) {
  const config::Store& settings = config.store;
  if (settings.path.empty()) return nullptr;
  store::sqlite::SqliteOptions options;
  options.path = settings.path;
  options.inline_bytes = settings.inline_bytes;
  options.max_log_bytes = settings.max_log_bytes;
  Result<std::unique_ptr<store::Store>> store = store::sqlite::open_sqlite_store(options);
  if (!store) return std::unexpected(std::move(store.error()));
  return std::unique_ptr<ServedJobs>(new ServedJobs(std::move(*store), config, telemetry));
}

ServedJobs::ServedJobs(std::unique_ptr<store::Store> store, const config::Config& config,
                       telemetry::Telemetry& telemetry)
    : telemetry_(telemetry),
      store_(std::move(store)),
      service_(*store_, config.store, config.jobs, telemetry) {}

Status ServedJobs::restore(api::Gateway& gateway) {
  if (Status spent = api::SpendingBook::restore(*store_, gateway.accounts()); !spent) return spent;
  const Result<api::LeaseTokens> tokens = api::LeaseTokens::restore(*store_);
  if (!tokens) return std::unexpected(tokens.error());
  gateway.attach(service_, *tokens);
  return {};
}

Status ServedJobs::start(api::Gateway& gateway, http::Server& server, const config::Jobs& jobs) {
  std::vector<http::EventLoop*> loops;
  for (std::size_t i = 0; i < server.loops(); ++i) loops.push_back(&server.loop(i));
  spending_.emplace(gateway.accounts(), service_, server.loop(0));
  spending_->start();
  performer_.emplace(gateway);
  service_.start(*performer_, std::move(loops));
  webhooks_.emplace(service_, server.loop(0), telemetry_, api::webhook_contents);
  Status configured = webhooks_->configure(jobs.webhooks);
  if (configured) webhooks_->start();
  return configured;
}

void ServedJobs::configure(const config::Jobs& jobs) {
  service_.configure(jobs);
  if (!webhooks_) return;
  if (const Status configured = webhooks_->configure(jobs.webhooks); !configured) {
    telemetry_.log().error("the webhooks of the new configuration are not in force; those before stay",
                           {{"why", configured.error().message}});
  }
}

void ServedJobs::stop() {
  if (!service_.drain(now())) {
    telemetry_.log().warn(
        "some jobs did not end in time; they are taken back and run when there is a server again", {});
  }
  if (webhooks_) webhooks_->stop(now() + kLastDeliveries);
  if (spending_) spending_->stop();
  service_.stop();
  webhooks_.reset();
  spending_.reset();
}

}  // namespace waybill::cli
