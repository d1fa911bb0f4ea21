#include "api/gateway.h"

#include <array>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "api/cors.h"
#include "api/deadline.h"
#include "api/error_answer.h"
#include "api/query.h"
#include "api/reloader.h"

namespace waybill::api {
namespace {

using http::Method;
using telemetry::Outcome;
using telemetry::Stage;

constexpr std::string_view kUnknownEndpoint = "(unknown)";
constexpr std::string_view kUnreadEndpoint = "(unread)";

TimePoint now() noexcept { return std::chrono::steady_clock::now(); }

// The sender's own address; empty for a UNIX socket.
bool is_this_machine(std::string_view address) noexcept {
  return address.empty() || address == "::1" || address.starts_with("127.") ||
         address.starts_with("::ffff:127.");
}

void accept_trace_context(const http::Request& request, telemetry::Waybill& waybill, double sample_ratio) {
  constexpr std::size_t kMost = 8;
  std::array<std::string_view, kMost> parents, states;
  std::size_t parent_count = 0, state_count = 0;
  for (const http::Header& header : request.headers) {
    if (parent_count < kMost && http::equal_names(header.name, "traceparent"))
      parents[parent_count++] = header.value;
    if (state_count < kMost && http::equal_names(header.name, "tracestate"))
      states[state_count++] = header.value;
  }
  waybill.trace(
      telemetry::accept_trace({parents.data(), parent_count}, {states.data(), state_count}, sample_ratio));
}

// Who asks, as they say themselves.
void note_ids(const http::Request& request, telemetry::Waybill& waybill, double sample_ratio) {
  accept_trace_context(request, waybill, sample_ratio);
  if (const std::string_view id = request.header("x-request-id"); !id.empty()) waybill.request_id(id);
  if (const std::string_view id = request.header("x-correlation-id"); !id.empty()) waybill.correlation_id(id);
}

void add_ids(const http::Request& request, const telemetry::Waybill& waybill, http::Response& response) {
  const std::string id = to_string(waybill.id());
  const std::string_view theirs = request.path.empty() ? "" : request.header("x-request-id");
  response.add_header("x-waybill-request-id", id);
  response.add_header("x-request-id", theirs.empty() ? std::string_view(id) : theirs);
}

ErrorCode code_of(const http::ParseFailure& failure) noexcept {
  switch (failure.status) {
    case 408:
      return ErrorCode::kDeadlineExceeded;
    case 499:
      return ErrorCode::kCancelled;
    case 503:
      return failure.code == "shutting_down" ? ErrorCode::kShuttingDown : ErrorCode::kOverloaded;
    default:
      return ErrorCode::kInvalidInput;
  }
}

Status check_coding(const http::Request& request) {
  const std::string_view coding = request.body.empty() ? "" : request.header("content-encoding");
  if (coding.empty() || http::equal_names(coding, "identity")) return {};
  return fail(
      ErrorCode::kUnsupported,
      fmt::format("The body is encoded (Content-Encoding: {}), which is not read here; send it as it is.",
                  coding.substr(0, 100)),
      "content-encoding");
}

Status no_endpoint(const http::Request& request, bool path_known, http::Response& response) {
  if (!path_known) {
    return fail(ErrorCode::kNotFound, fmt::format("There is nothing at {}. GET /docs lists what there is.",
                                                  request.path.substr(0, 200)));
  }
  const std::string allowed = allowed_methods(request.path);
  response.add_header("Allow", allowed);
  return fail(ErrorCode::kMethodNotAllowed,
              fmt::format("{} cannot be used on {}; use one of {}.",
                          request.method == Method::kOther ? "This method" : to_string(request.method),
                          request.path, allowed));
}

}  // namespace

namespace {

void refresh_upstream_metrics(telemetry::ProgramMetrics& metrics, const upstream::Catalog& catalog) {
  const TimePoint at = now();
  for (const auto& [name, target] : catalog.targets()) {
    const upstream::CircuitState state = target->circuit.state(at);
    metrics.target_state.with({name}).set(state == upstream::CircuitState::kClosed     ? 0
                                          : state == upstream::CircuitState::kHalfOpen ? 1
                                                                                       : 2);
  }
  for (const auto& provider : catalog.providers()) {
    const std::string& name = provider->config().name;
    const upstream::LaneQueue::Stats lanes = provider->lanes().stats(at);
    metrics.provider_in_flight.with({name}).set(
        static_cast<double>(lanes.interactive.in_use + lanes.batch.in_use));
    metrics.lane_waiting.with({name, "interactive"}).set(static_cast<double>(lanes.interactive.waiting));
    metrics.lane_waiting.with({name, "batch"}).set(static_cast<double>(lanes.batch.waiting));
  }
}

}  // namespace

void add_id_headers(const Call& call) { add_ids(call.request(), call.waybill, call.response()); }

Gateway::Gateway(telemetry::Telemetry& telemetry, std::unique_ptr<route::Engine> engine,
                 std::shared_ptr<const upstream::Catalog> catalog, Keyring keys, GatewayOptions options)
    : telemetry_(telemetry),
      options_(options),
      engines_(std::move(engine)),
      dispatcher_(telemetry.metrics()) {
  publish(std::move(catalog), std::move(keys));
  scrape_hook_ = telemetry.registry().on_scrape([this] { refresh_metrics(); });
}

Gateway::~Gateway() = default;

std::shared_ptr<const Deployment> Gateway::deployment() const noexcept {
  const std::lock_guard lock(deployment_mutex_);
  return deployment_;
}

void Gateway::deploy(std::unique_ptr<route::Engine> engine, std::shared_ptr<const upstream::Catalog> catalog,
                     Keyring keys) {
  {
    const std::lock_guard lock(counted_mutex_);
    count_cache();
    engines_.replace(std::move(engine));
    publish(std::move(catalog), std::move(keys));
  }
  if (deployed_) deployed_(deployment()->config());
}

void Gateway::publish(std::shared_ptr<const upstream::Catalog> catalog, Keyring keys) {
  std::shared_ptr<const route::Engine> engine = engines_.current();
  std::string models = models_json(*engine, *catalog);
  keys.open_accounts(accounts_);
  answers_.limit(engine->config().gateway.cache_bytes);
  auto next = std::make_shared<const Deployment>(std::move(engine), std::move(catalog), std::move(keys),
                                                 std::move(models));
  const std::lock_guard lock(deployment_mutex_);
  std::erase_if(in_use_, [](const auto& each) { return each.expired(); });
  in_use_.push_back(next);
  deployment_.swap(next);
}

void Gateway::stop_deciding() {
  std::vector<std::shared_ptr<const Deployment>> in_use;
  {
    const std::lock_guard lock(deployment_mutex_);
    for (const auto& each : in_use_) {
      if (auto held = each.lock()) in_use.push_back(std::move(held));
    }
  }
  for (const auto& each : in_use) {
    if (!each->engine->has_encoder()) continue;
    each->engine->decisions().stop();
    each->engine->embeddings().stop();
  }
}

void Gateway::stop() { dispatcher_.stop(); }

void Gateway::reload(Executor& executor, std::move_only_function<void(Result<std::string>)> done) {
  auto posted = [&executor, done = std::move(done)](Result<std::string> result) mutable {
    executor.post(
        [done = std::move(done), result = std::move(result)]() mutable { done(std::move(result)); });
  };
  reloader_.load()->request(std::move(posted));
}

http::Task<> Gateway::handle(http::Exchange& exchange) {
  const http::Request& request = exchange.request;
  const FoundEndpoint found = find_endpoint(request.method, request.path);
  Call call{.exchange = exchange, .endpoint = found.endpoint, .deployment = deployment(), .waybill = {}};
  add_cors_headers(request, call.deployment->config().server.cors, exchange.response);
  if (request.method == Method::kOptions && (found.path_known || request.path == "*")) {
    exchange.response.status = 204;
    exchange.response.add_header("Allow", allowed_methods(request.path));
    co_return;
  }
  if (found.endpoint == nullptr || found.endpoint->accounted) open_waybill(call);
  Status status;
  if (found.endpoint != nullptr) {
    status = co_await answer(*found.endpoint, call);
  } else {
    status = no_endpoint(request, found.path_known, exchange.response);
  }
  finish(std::move(call), status);
}

void Gateway::open_waybill(Call& call) {
  const http::Request& request = call.request();
  call.waybill = telemetry_.waybills().open(call.endpoint == nullptr ? kUnknownEndpoint : call.endpoint->path,
                                            request.started);
  call.waybill.stage(Stage::kRead, request.started, request.received);
  note_ids(request, call.waybill, telemetry_.trace_sample_ratio());
}

http::Task<Status> Gateway::perform(http::Exchange& exchange, JobCall& job) {
  const FoundEndpoint found = find_endpoint(Method::kPost, exchange.request.path);
  Call call{.exchange = exchange, .endpoint = found.endpoint, .deployment = deployment(), .waybill = {}};
  call.job = &job;
  call.deadline = job.deadline;
  open_waybill(call);
  call.waybill.caller(job.caller);
  call.caller = call.deployment->keys.named(job.caller);
  Status status;
  if (found.endpoint == nullptr) {
    status = no_endpoint(exchange.request, found.path_known, exchange.response);
  } else if (call.caller == nullptr && !job.caller.empty()) {
    status = fail(ErrorCode::kPermissionDenied,
                  fmt::format("The key \"{}\", which this job came with, is no longer there.", job.caller));
  } else {
    const http::EventLoop::Activity doing(exchange.loop(), found.endpoint->path.data());
    status = co_await run(*found.endpoint, call);
  }
  job.record = call.waybill.record();
  finish(std::move(call), status);
  co_return status;
}

http::Task<Status> Gateway::answer(const Endpoint& endpoint, Call& call) {
  const http::EventLoop::Activity doing(call.exchange.loop(), endpoint.path.data());
  Status status = admit(endpoint, call);
  if (status) status = check_query(endpoint, call.request().query);
  if (status) status = check_coding(call.request());
  if (status) status = co_await run(endpoint, call);
  co_return status;
}

http::Task<Status> Gateway::run(const Endpoint& endpoint, Call& call) {
  Status status;
  try {
    status = co_await endpoint.run(*this, call);
  } catch (const std::exception& error) {
    telemetry_.log().error("an endpoint threw", {{"endpoint", endpoint.path}, {"what", error.what()}});
    status =
        fail(ErrorCode::kInternal, "This is a fault of the server, not of the request; its log says more.");
  }
  co_return status;
}

Status Gateway::admit(const Endpoint& endpoint, Call& call) {
  const http::Request& request = call.request();
  const http::Peer& peer = call.exchange.peer();
  if (endpoint.access == Access::kAdmin && options_.separate_admin) {
    if (peer.surface == http::Surface::kAdmin) return {};
    return fail(ErrorCode::kNotFound,
                "This is not served here; it is on the admin listener (server.admin_listen).");
  }
  if (endpoint.access == Access::kAdmin && !options_.separate_admin && call.deployment->keys.empty() &&
      !is_this_machine(peer.address)) {
    return fail(
        ErrorCode::kPermissionDenied,
        "Without keys this is for this machine only; add a key with admin: true, or give it a listener of "
        "its own (server.admin_listen).");
  }
  if (endpoint.access != Access::kOpen && !call.deployment->keys.empty()) {
    std::string_view key = presented_key(request.header("authorization"), request.header("x-api-key"));
    if (key.empty()) key = key_in_protocols(request.header("sec-websocket-protocol"));
    call.caller = call.deployment->keys.find(key);
    if (call.caller == nullptr) {
      return fail(ErrorCode::kUnauthenticated,
                  "A valid API key is needed; send it as \"Authorization: Bearer KEY\" (keys are set in "
                  "waybill.yaml).");
    }
    call.waybill.caller(call.caller->name);
    if (endpoint.access == Access::kAdmin && !call.caller->admin) {
      return fail(
          ErrorCode::kPermissionDenied,
          fmt::format("The key \"{}\" may not do this; it needs a key with admin: true.", call.caller->name));
    }
  }
  if (!endpoint.accounted) return {};  // it waits for nothing
  const Result<Duration> timeout =
      timeout_of(request, call.deployment->config().admission, endpoint.calls_model);
  if (!timeout) return std::unexpected(timeout.error());
  call.deadline = request.started + *timeout;
  return {};
}

void Gateway::finish(Call call, const Status& status) {
  http::Exchange& exchange = call.exchange;
  http::Response& response = call.response();
  Outcome outcome = Outcome::kCompleted;
  if (!status) {
    const Problem problem = problem_of(status.error().code);
    outcome = problem.outcome;
    Error told = status.error();
    if (outcome == Outcome::kExpired && call.waybill.is_open()) {
      told.message += fmt::format(" (stage: {})", to_string(stage_of(call.waybill.record(), outcome)));
    }
    if (!call.has_answer && !exchange.body_begun()) write_error(told, problem, response);
  }
  if (draining_) response.close = true;
  if (!call.waybill.is_open()) return;
  if (!status) call.waybill.fail(status.error(), stage_of(call.waybill.record(), outcome));
  if (!exchange.body_begun()) add_id_headers(call);
  exchange.on_sent = [waybill = std::move(call.waybill), outcome, code = response.status,
                      begin = now()](bool sent) mutable {
    waybill.stage(Stage::kWrite, begin, now());
    if (!sent && outcome == Outcome::kCompleted) {
      waybill.fail({ErrorCode::kCancelled, "The client went away before the answer was sent.", {}},
                   Stage::kWrite);
      outcome = Outcome::kCancelled;
    }
    waybill.close(outcome, sent ? code : 0);
  };
}

void Gateway::refuse(http::Exchange& exchange, const http::ParseFailure& failure) {
  const http::Request& request = exchange.request;
  telemetry::Waybill waybill = telemetry_.waybills().open(kUnreadEndpoint, request.started);
  waybill.stage(Stage::kRead, request.started, request.received);
  if (!request.path.empty()) {  // else the head is not whole, and says nothing for certain
    note_ids(request, waybill, telemetry_.trace_sample_ratio());
    add_cors_headers(request, deployment()->config().server.cors, exchange.response);
  }
  const ErrorCode code = code_of(failure);
  Problem problem = problem_of(code);
  problem.status = failure.status;
  problem.code = failure.code;
  if (failure.status < 500) problem.type = "invalid_request_error";
  const Error error = {code, std::string(failure.message), {}};
  write_error(error, problem, exchange.response);
  waybill.fail(error, Stage::kRead);
  add_ids(request, waybill, exchange.response);
  exchange.on_sent = [waybill = std::move(waybill), problem](bool sent) mutable {
    waybill.close(problem.outcome, sent ? problem.status : 0);
  };
}

void Gateway::refresh_metrics() {
  telemetry::ProgramMetrics& metrics = telemetry_.metrics();
  if (const http::Server* server = server_.load()) {
    const http::ServerStats stats = server->stats();
    metrics.connections.set(static_cast<double>(stats.connections));
    metrics.connections_total.set(stats.accepted);
    metrics.connections_refused.set(stats.refused_full);
    metrics.write_stalls.set(stats.write_stalls);
    metrics.request_body_bytes.set(static_cast<double>(stats.body_bytes));
    metrics.request_bodies_refused.set(stats.bodies_refused);
    metrics.handler_exceptions.set(stats.handler_threw);
  }
  const std::shared_ptr<const Deployment> current = deployment();
  refresh_upstream_metrics(metrics, *current->catalog);
  if (current->engine->has_encoder()) {
    const route::DecisionStats stats = current->engine->decisions().stats();
    metrics.queue_tokens.set(static_cast<double>(stats.batcher.queued_tokens));
    metrics.predicted_wait_seconds.set(seconds(stats.predicted_wait));
    const embed::EmbeddingStats embeddings = current->engine->embeddings().stats();
    metrics.embedding_queue_tokens.set(static_cast<double>(embeddings.batcher.queued_tokens));
    metrics.waiting_texts.set(static_cast<double>(stats.waiting_texts));
  }
  metrics.response_cache_bytes.set(static_cast<double>(answers_.bytes()));
  const std::lock_guard lock(counted_mutex_);
  count_cache();
}

// A router counts from its own beginning, the metrics from the program's: what has come since the last look
// is added. Under counted_mutex_, which a change of the engine takes too: the engine before is never looked
// at again.
void Gateway::count_cache() {
  const std::shared_ptr<const Deployment> current = deployment();
  if (!current->engine->has_encoder()) return;
  const route::ExactCacheStats stats = current->engine->router().cache_stats();
  if (counted_engine_ != current->engine.get()) counted_hits_ = counted_misses_ = 0;
  counted_engine_ = current->engine.get();
  telemetry_.metrics().cache_hits.add(stats.hits - std::exchange(counted_hits_, stats.hits));
  telemetry_.metrics().cache_misses.add(stats.misses - std::exchange(counted_misses_, stats.misses));
}

}  // namespace waybill::api
