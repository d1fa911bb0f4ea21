// Between the HTTP server and the endpoints: every request is accepted, admitted, answered, and closed
// exactly once.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/answer_store.h"
#include "api/conversations.h"
#include "api/deployment.h"
#include "api/endpoint.h"
#include "api/lease_tokens.h"
#include "http/server.h"
#include "jobs/service.h"
#include "route/engine_slot.h"
#include "telemetry/telemetry.h"
#include "upstream/dispatcher.h"

namespace waybill::api {

class Reloader;

struct GatewayOptions {
  bool separate_admin = false;  // admin endpoints are on a listener of their own
};

// Thread-safe.
class Gateway final : public http::Handler {
 public:
  Gateway(telemetry::Telemetry& telemetry, std::unique_ptr<route::Engine> engine,
          std::shared_ptr<const upstream::Catalog> catalog, Keyring keys, GatewayOptions options);
  ~Gateway() override;

  http::Task<> handle(http::Exchange& exchange) override;
  void refuse(http::Exchange& exchange, const http::ParseFailure& failure) override;
  // A job's request, which is accounted for and limited as one that comes over HTTP is, but that its caller
  // is known by name. Fills the response as handle() does, and says what went wrong; exchange.on_sent is to
  // be called.
  http::Task<Status> perform(http::Exchange& exchange, JobCall& job);

  [[nodiscard]] std::shared_ptr<const Deployment> deployment() const noexcept;
  // Puts another engine, catalog and other keys into force; requests in flight end with those they began
  // with.
  void deploy(std::unique_ptr<route::Engine> engine, std::shared_ptr<const upstream::Catalog> catalog,
              Keyring keys);

  // From then on /ready says no, and answers close their connections.
  void start_draining() noexcept { draining_ = true; }
  [[nodiscard]] bool draining() const noexcept { return draining_; }

  // What still waits for a decision or an embedding, under this configuration or one before, is answered that
  // the server is shutting down.
  void stop_deciding();
  // Before the event loops end: what works for them elsewhere calls back no more.
  void stop();

  // Whose figures /metrics shows, and who reloads. Both must outlive the gateway's last request.
  void attach(const http::Server& server, Reloader& reloader) noexcept {
    server_ = &server;
    reloader_ = &reloader;
  }
  // Where jobs are kept and run, which must outlive the gateway's last request, and what their leases are
  // named by. Before the server starts.
  void attach(jobs::Service& jobs, const LeaseTokens& tokens) noexcept {
    jobs_ = &jobs;
    lease_tokens_.emplace(tokens);
  }
  // Null: there are none here.
  [[nodiscard]] jobs::Service* jobs() const noexcept { return jobs_; }
  // Where there are jobs.
  [[nodiscard]] const LeaseTokens& lease_tokens() const { return lease_tokens_.value(); }
  // Told of each configuration that comes into force after the first; on the thread that deploys it. Before
  // anything deploys.
  void on_deployed(std::function<void(const config::Config&)> told) { deployed_ = std::move(told); }
  // Asks for a reload; `done` runs on `executor`.
  void reload(Executor& executor, std::move_only_function<void(Result<std::string>)> done);

  [[nodiscard]] telemetry::Telemetry& telemetry() noexcept { return telemetry_; }
  [[nodiscard]] upstream::Dispatcher& dispatcher() noexcept { return dispatcher_; }
  [[nodiscard]] Conversations& conversations() noexcept { return conversations_; }
  [[nodiscard]] CallerAccounts& accounts() noexcept { return accounts_; }
  [[nodiscard]] AnswerStore& answers() noexcept { return answers_; }
  [[nodiscard]] const GatewayOptions& options() const noexcept { return options_; }

 private:
  http::Task<Status> answer(const Endpoint& endpoint, Call& call);
  void open_waybill(Call& call);
  http::Task<Status> run(const Endpoint& endpoint, Call& call);
  [[nodiscard]] Status admit(const Endpoint& endpoint, Call& call);
  void finish(Call call, const Status& status);
  void publish(std::shared_ptr<const upstream::Catalog> catalog, Keyring keys);
  void count_cache();
  void refresh_metrics();  // at each scrape

  telemetry::Telemetry& telemetry_;
  const GatewayOptions options_;
  route::EngineSlot engines_;
  upstream::Dispatcher dispatcher_;
  Conversations conversations_;
  AnswerStore answers_;
  CallerAccounts accounts_;
  mutable std::mutex deployment_mutex_;
  // Guarded by deployment_mutex_, as the next: every deployment that a request may still use.
  std::shared_ptr<const Deployment> deployment_;
  std::vector<std::weak_ptr<const Deployment>> in_use_;
  std::atomic<bool> draining_{false};
  std::atomic<const http::Server*> server_{nullptr};
  std::atomic<Reloader*> reloader_{nullptr};
  jobs::Service* jobs_ = nullptr;
  std::optional<LeaseTokens> lease_tokens_;
  std::function<void(const config::Config&)> deployed_;
  std::mutex counted_mutex_;
  const void* counted_engine_ = nullptr;  // guarded by counted_mutex_, as what was counted of its cache
  std::uint64_t counted_hits_ = 0, counted_misses_ = 0;
  telemetry::Registry::Hook scrape_hook_;
};

}  // namespace waybill::api
