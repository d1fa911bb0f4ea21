#include "jobs/webhook_sender.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <fmt/format.h>

#include "base/check.h"
#include "config/secret.h"
#include "http/client_pool.h"
#include "http/deadline.h"
#include "http/pending.h"
#include "http/resolver.h"
#include "jobs/webhook_plan.h"
#include "jobs/webhook_turns.h"
#include "upstream/failure.h"

namespace waybill::jobs {
namespace {

using Due = store::ClaimDeliveries::Due;
using Turn = WebhookTurns::Turn;
using Next = WebhookPlan::Next;

constexpr Duration kLook = std::chrono::seconds(1);   // how often it is seen what is due
constexpr Duration kCount = std::chrono::seconds(5);  // how often it is counted what waits
constexpr std::size_t kMostClaimed = 256;             // at a time
constexpr Duration kWaitForTurn = std::chrono::seconds(30);
constexpr Duration kWriteAgain = std::chrono::seconds(1);
constexpr Duration kSettleTime = std::chrono::seconds(10);  // to write down what came of a delivery
constexpr std::size_t kMostAnswerBytes = 64U << 10;         // read for the connection's sake
constexpr std::size_t kMostOrigins = 1024;

TimePoint now() noexcept { return std::chrono::steady_clock::now(); }
store::Time microseconds(Duration duration) noexcept {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

struct Settings {
  config::JobWebhooks config;
  std::vector<WebhookSecret> secrets;
  std::shared_ptr<const http::ClientTlsContext> tls;
};

// What is sent, made on a reader's thread.
struct Message {
  store::Job job;  // with its errors
  WebhookContents contents;
  std::string body;
};

std::string host_key(const WebhookUrl& url) { return fmt::format("{}|{}|{}", url.tls, url.host, url.port); }

}  // namespace

struct WebhookSender::Impl {
  Impl(Service& service_in, http::EventLoop& loop_in, telemetry::Telemetry& telemetry_in, Tell tell_in)
      : service(service_in), loop(loop_in), telemetry(telemetry_in), tell(std::move(tell_in)) {}

  Service& service;
  http::EventLoop& loop;
  // Its own: names that others choose, and that are slow to be found, must not keep providers waiting.
  http::Resolver resolver;
  telemetry::Telemetry& telemetry;
  const Tell tell;

  // Of the loop's thread:
  WebhookTurns turns{1};
  std::set<http::ClientConnection*> connections;  // of the deliveries that are out
  std::map<std::string, std::shared_ptr<const http::Origin>> origins;
  std::shared_ptr<const Settings> origins_of;
  std::minstd_rand random{std::random_device{}()};
  bool stopping = false, hurried = false, claim_wanted = true;
  TimePoint look_at{};  // when it is seen next what is due
  std::function<void()> wake;

  std::mutex mutex;  // guards the next three
  std::shared_ptr<const Settings> settings;
  std::size_t running = 0;
  std::condition_variable ended;
  bool started = false;

  void spawn(http::Task<> task) {
    {
      const std::lock_guard lock(mutex);
      ++running;
    }
    boost::asio::co_spawn(loop.context(), std::move(task), [this](const std::exception_ptr&) { leave(); });
  }
  void leave() {
    const std::lock_guard lock(mutex);
    if (--running == 0) ended.notify_all();
  }
  // Counted as running, so that stop() outlasts it.
  template <class Work>
  void on_loop(Work work) {
    {
      const std::lock_guard lock(mutex);
      ++running;
    }
    loop.post([this, work = std::move(work)] {
      work();
      leave();
    });
  }
  void rouse() {
    if (wake) std::exchange(wake, nullptr)();
  }
  std::shared_ptr<const Settings> current() {
    const std::lock_guard lock(mutex);
    return settings;
  }

  http::Task<> watch();
  http::Task<> claim(std::shared_ptr<const Settings> with);
  http::Task<> count();
  http::Task<> wait(Duration time);
  http::Task<> deliver(Turn turn, std::shared_ptr<const Settings> with);
  http::Task<WebhookAttempt> attempt(Turn& turn, std::shared_ptr<const Settings> with);
  http::Task<http::ClientResult<void>> exchange(http::ClientConnection& connection, std::string_view head,
                                                std::string_view body, TimePoint limit);
  http::Task<> settle(store::SettleDelivery command);
  std::shared_ptr<const http::Origin> origin(const WebhookUrl& url,
                                             const std::shared_ptr<const Settings>& with);
  void report(const Turn& turn, const WebhookAttempt& came, const WebhookPlan& plan);
};

http::Task<> WebhookSender::Impl::wait(Duration time) {
  http::Pending<bool> pending;
  http::Deadline tick(loop, [&pending] { pending.set(true); });
  tick.set(now() + time);
  (void)co_await pending.get();
}

http::Task<> WebhookSender::Impl::watch() {
  Hub::Subscription news = service.hub().watch_all({}, {}, loop, [this](const store::Change& change) {
    if (!store::is_terminal(change.state) || change.events || change.removed) return;
    claim_wanted = true;
    rouse();
  });
  TimePoint count_at{};
  while (!stopping) {
    const std::shared_ptr<const Settings> with = current();
    turns.set_concurrency(with->config.concurrency);
    if (now() >= look_at) {
      look_at = now() + kLook;
      claim_wanted = true;
    }
    if (now() >= count_at) {
      count_at = now() + kCount;
      co_await count();
    }
    if (claim_wanted && turns.room() > 0) co_await claim(with);
    while (!stopping) {
      std::optional<Turn> turn = turns.next(now());
      if (!turn) break;
      spawn(deliver(std::move(*turn), with));
    }
    if (stopping || (claim_wanted && turns.room() > 0)) continue;
    http::Pending<bool> pending;
    http::Deadline tick(loop, [&pending] { pending.set(true); });
    tick.set(look_at);
    wake = [&pending] { pending.set(false); };
    (void)co_await pending.get();
    wake = nullptr;
  }
}

http::Task<> WebhookSender::Impl::claim(std::shared_ptr<const Settings> with) {
  const std::size_t most = std::min(turns.room(), kMostClaimed);
  // A delivery that begins has its whole time before another could take it.
  const Duration length = kWaitForTurn + with->config.timeout + kSettleTime;
  const TimePoint begin_by = now() + kWaitForTurn;
  claim_wanted = false;
  const store::ClaimDeliveries command{.max = most, .until = store_now() + microseconds(length)};
  Result<std::vector<Due>> claimed = co_await service.commit(command, loop);
  if (!claimed) co_return;  // it is looked again soon
  if (claimed->size() == most) claim_wanted = true;
  for (Due& due : *claimed) {
    const Result<WebhookUrl> url = parse_webhook_url(due.url);
    std::string host = url ? host_key(*url) : std::string();
    (void)turns.add({.host = std::move(host), .due = std::move(due), .until = begin_by});
  }
}

http::Task<> WebhookSender::Impl::count() {
  auto look = [](store::Store& from) { return from.stats(); };
  Result<store::StoreStats> stats = co_await service.read(loop, std::move(look));
  if (!stats) co_return;
  telemetry.metrics().webhook_pending.set(static_cast<double>(stats->deliveries));
  telemetry.metrics().webhook_dead.set(static_cast<double>(stats->dead_deliveries));
}

http::Task<> WebhookSender::Impl::deliver(Turn turn, std::shared_ptr<const Settings> with) {
  const TimePoint began = now();
  WebhookAttempt came = co_await attempt(turn, with);
  if (hurried && came.status == 0) {  // cut off by us: as if it had not been made, but for its claim
    turns.ended(turn.host);
    co_return;
  }
  const double share = std::uniform_real_distribution<>(0, 1)(random);
  const WebhookPlan plan = plan_webhook(came, turn.due.attempts, with->config.schedule, share);
  telemetry.metrics().webhook_seconds.observe(seconds(now() - began));
  report(turn, came, plan);
  if (came.retry_after) turns.pause(turn.host, *came.retry_after, now());
  turns.ended(turn.host);
  rouse();
  store::SettleDelivery command;
  command.delivery = turn.due.delivery;
  command.status = came.status;
  command.error = came.error;
  if (plan.next == Next::kAgain) {
    command.to = store::SettleDelivery::To::kAgain;
    command.again_at = store_now() + microseconds(plan.wait);
  } else if (plan.next != Next::kDelivered) {
    command.to = store::SettleDelivery::To::kDead;
  }
  if (plan.next == Next::kGone) command.disable_url = turn.due.url;
  co_await settle(std::move(command));
  if (plan.next != Next::kAgain) co_return;
  look_at = std::min(look_at, now() + plan.wait);
  rouse();
}

void WebhookSender::Impl::report(const Turn& turn, const WebhookAttempt& came, const WebhookPlan& plan) {
  telemetry.metrics().webhook_deliveries.with({to_string(plan.next)}).add();
  if (plan.next == Next::kDelivered) return;
  const Result<WebhookUrl> url = parse_webhook_url(turn.due.url);
  // A path may be a secret: it is how many receivers know who calls.
  telemetry.log().warn("a webhook was not delivered", {{"job", to_string(turn.due.job.id)},
                                                       {"host", url ? url->host : std::string()},
                                                       {"attempt", turn.due.attempts + 1},
                                                       {"status", came.status},
                                                       {"error", came.error},
                                                       {"next", to_string(plan.next)},
                                                       {"wait_seconds", seconds(plan.wait)}});
}

// What came of a delivery is worth some patience with the store: it is made again otherwise.
http::Task<> WebhookSender::Impl::settle(store::SettleDelivery command) {
  const TimePoint until = now() + kSettleTime;
  for (;;) {
    Result<bool> settled = co_await service.commit(command, loop);
    if (settled || stopping || now() >= until) co_return;
    co_await wait(kWriteAgain);
  }
}

http::Task<WebhookAttempt> WebhookSender::Impl::attempt(Turn& turn, std::shared_ptr<const Settings> with) {
  const TimePoint limit = now() + with->config.timeout;
  WebhookAttempt came;
  // The settings may have changed since the job was submitted.
  const Result<WebhookUrl> url = check_webhook_url(turn.due.url, with->config);
  if (!url) {
    came.error = url.error().message;
    co_return came;
  }
  auto make = [this, &turn](store::Store& from) -> Result<Message> {
    Result<std::optional<store::Job>> job = from.find(turn.due.job.id);
    if (!job) return std::unexpected(std::move(job.error()));
    if (!*job || !store::is_terminal((*job)->state))
      return fail(ErrorCode::kCancelled, "the job was tried again, or removed, before this was sent");
    Result<std::optional<store::JobResult>> result = from.result(turn.due.job.id);
    if (!result) return std::unexpected(std::move(result.error()));
    const bool fits = *result && (*result)->body.size() <= kMostResultBytes;
    Message made{.job = std::move(**job), .contents = {}, .body = {}};
    made.contents = tell(made.job, fits ? &**result : nullptr);
    made.body = write_webhook_event(made.job, made.contents);
    return made;
  };
  Result<Message> message = co_await service.read(loop, std::move(make));
  if (!message) {
    came.superseded = message.error().code == ErrorCode::kCancelled;
    came.error = std::move(message.error().message);
    co_return came;
  }
  const std::int64_t timestamp = store_now() / 1'000'000;
  const std::string head =
      write_webhook_head(*url, message->job, message->contents, with->secrets, timestamp, message->body);
  http::ClientPool& pool = loop.local<http::ClientPool>();
  const std::shared_ptr<const http::Origin> way = origin(*url, with);
  std::unique_ptr<http::ClientConnection> connection = pool.take(way, resolver);
  http::ClientResult<void> done = co_await exchange(*connection, head, message->body, limit);
  if (!done && done.error().stale) {
    connection = pool.make(way, resolver);
    done = co_await exchange(*connection, head, message->body, limit);
  }
  if (!done) {
    came.error = fmt::format("{}: {}", http::to_string(done.error().stage), done.error().message);
    co_return came;
  }
  came.status = connection->head().status;
  if (came.status / 100 != 2) came.retry_after = upstream::retry_after(connection->head());
  if (came.status / 100 == 3) came.error = "redirects are not followed";
  pool.give_back(std::move(connection));
  co_return came;
}

http::Task<http::ClientResult<void>> WebhookSender::Impl::exchange(http::ClientConnection& connection,
                                                                   std::string_view head,
                                                                   std::string_view body, TimePoint limit) {
  connections.insert(&connection);
  if (hurried) connection.cancel();
  http::ClientResult<void> done;
  if (!connection.is_open()) done = co_await connection.open(limit);
  if (done) done = co_await connection.send(head, body, limit);
  if (done) done = co_await connection.read_head(limit);
  // The answer is known; the rest is for the next delivery on this connection.
  std::size_t bytes = 0;
  while (done && bytes <= kMostAnswerBytes) {
    http::ClientResult<std::string_view> piece = co_await connection.read_body(limit);
    if (!piece || piece->empty()) break;
    bytes += piece->size();
  }
  connections.erase(&connection);
  co_return done;
}

std::shared_ptr<const http::Origin> WebhookSender::Impl::origin(const WebhookUrl& url,
                                                                const std::shared_ptr<const Settings>& with) {
  if (origins_of != with || origins.size() >= kMostOrigins) origins.clear();
  origins_of = with;
  std::shared_ptr<const http::Origin>& kept = origins[host_key(url)];
  if (kept) return kept;
  auto made = std::make_shared<http::Origin>();
  made->tls = url.tls;
  made->host = url.host;
  made->port = url.port;
  made->tls_context = url.tls ? with->tls : nullptr;
  made->resolve_timeout = made->connect_timeout = made->tls_timeout = with->config.timeout;
  const bool allow_private = with->config.allow_private;
  made->may_connect = [allow_private](const boost::asio::ip::address& address) {
    return may_connect(address, allow_private);
  };
  kept = std::move(made);
  return kept;
}

WebhookSender::WebhookSender(Service& service, http::EventLoop& loop, telemetry::Telemetry& telemetry,
                             Tell tell)
    : impl_(std::make_unique<Impl>(service, loop, telemetry, std::move(tell))) {}

WebhookSender::~WebhookSender() { stop(now()); }

Status WebhookSender::configure(const config::JobWebhooks& webhooks) {
  auto made = std::make_shared<Settings>();
  made->config = webhooks;
  for (std::size_t i = 0; i < webhooks.secrets.size(); ++i) {
    const std::string field = fmt::format("jobs.webhooks.secrets[{}]", i);
    const Result<std::string> text = config::read_secret(webhooks.secrets[i], field);
    if (!text) return std::unexpected(text.error());
    Result<WebhookSecret> secret = WebhookSecret::parse(*text);
    if (!secret)
      return fail(secret.error().code, fmt::format("{}: {}", field, secret.error().message), field);
    made->secrets.push_back(std::move(*secret));
  }
  Result<std::shared_ptr<const http::ClientTlsContext>> tls = http::ClientTlsContext::load({});
  if (!tls) return std::unexpected(std::move(tls.error()));
  made->tls = std::move(*tls);
  const std::lock_guard lock(impl_->mutex);
  impl_->settings = std::move(made);
  return {};
}

void WebhookSender::start() {
  Impl* impl = impl_.get();
  WAYBILL_CHECK(impl->current() != nullptr);
  impl->started = true;
  impl->on_loop([impl] { impl->spawn(impl->watch()); });
}

void WebhookSender::stop(TimePoint deadline) {
  Impl* impl = impl_.get();
  if (!std::exchange(impl->started, false)) return;
  impl->on_loop([impl] {
    impl->stopping = true;
    impl->rouse();
  });
  std::unique_lock lock(impl->mutex);
  const auto is_over = [impl] { return impl->running == 0; };
  if (!impl->ended.wait_until(lock, deadline, is_over)) {
    lock.unlock();
    impl->on_loop([impl] {
      impl->hurried = true;
      for (http::ClientConnection* connection : impl->connections) connection->cancel();
    });
    lock.lock();
    impl->ended.wait(lock, is_over);
  }
  lock.unlock();
  impl->resolver.stop();  // what is still looked up calls back through the loop
}

}  // namespace waybill::jobs
