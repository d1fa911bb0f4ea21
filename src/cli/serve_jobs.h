// The jobs of `waybill serve`: their store, who runs them, who tells of them.
#pragma once

#include <memory>
#include <optional>

#include "api/gateway.h"
#include "api/job_performer.h"
#include "api/spending_book.h"
#include "base/clock.h"
#include "base/result.h"
#include "config/config.h"
#include "http/server.h"
#include "jobs/service.h"
#include "jobs/webhook_sender.h"
#include "store/store.h"
#include "telemetry/telemetry.h"

namespace waybill::cli {

// Opened before anything serves, started when the server runs, stopped before it does. One thread's.
class ServedJobs {
 public:
  // Nothing where no store is configured.
  [[nodiscard]] static Result<std::unique_ptr<ServedJobs>> open(const config::Config& config,
                                                                telemetry::Telemetry& telemetry);

  [[nodiscard]] jobs::Service& service() noexcept { return service_; }
  // What callers had spent before, and by what the leases of workers are named; attaches the service. Before
  // anything serves.
  [[nodiscard]] Status restore(api::Gateway& gateway);
  // Both outlive stop(). Fails where a webhook's secret cannot be read.
  [[nodiscard]] Status start(api::Gateway& gateway, http::Server& server, const config::Jobs& jobs);
  // Other queues and limits. Thread-safe once it is started.
  void configure(const config::Jobs& jobs);

  // Begins no more jobs.
  void stop_claiming() { service_.stop_claiming(); }
  [[nodiscard]] bool is_idle() const { return service_.is_idle(); }
  // Takes back what still runs, writes what is left, and ends. While the loops still run.
  void stop();

 private:
  ServedJobs(std::unique_ptr<store::Store> store, const config::Config& config,
             telemetry::Telemetry& telemetry);

  telemetry::Telemetry& telemetry_;
  std::unique_ptr<store::Store> store_;
  jobs::Service service_;
  std::optional<api::JobPerformer> performer_;
  std::optional<jobs::WebhookSender> webhooks_;
  std::optional<api::SpendingBook> spending_;
};

}  // namespace waybill::cli
