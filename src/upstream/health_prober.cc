#include "upstream/health_prober.h"

#include <utility>

#include <boost/asio/co_spawn.hpp>

#include "http/deadline.h"
#include "http/pending.h"
#include "upstream/inquiry.h"

namespace waybill::upstream {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(200);  // how often it is seen what is due
constexpr Duration kPatience = std::chrono::seconds(5);     // with one provider

TimePoint now() noexcept { return std::chrono::steady_clock::now(); }

}  // namespace

HealthProber::HealthProber(http::EventLoop& loop, http::Resolver& resolver, CurrentCatalog current)
    : loop_(loop), resolver_(resolver), current_(std::move(current)) {}

HealthProber::~HealthProber() { stop(); }

void HealthProber::start() {
  started_ = true;
  {
    const std::lock_guard lock(mutex_);
    ++running_;  // of the watch, from now on: stop() may come before it has begun
  }
  loop_.post([this] {
    spawn(watch());
    const std::lock_guard lock(mutex_);
    --running_;
  });
}

void HealthProber::stop() {
  if (!std::exchange(started_, false)) return;
  loop_.post([this] {
    stopping_ = true;
    if (wake_) wake_();
  });
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return running_ == 0; });
}

void HealthProber::spawn(http::Task<> task) {
  {
    const std::lock_guard lock(mutex_);
    ++running_;
  }
  boost::asio::co_spawn(loop_.context(), std::move(task), [this](const std::exception_ptr&) {
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) ended_.notify_all();
  });
}

http::Task<> HealthProber::watch() {
  while (!stopping_) {
    const std::shared_ptr<const Catalog> catalog = current_();
    for (const auto& provider : catalog->providers()) {
      const config::ProviderHealth& health = provider->config().health;
      if (health.interval == Duration::zero()) continue;
      const auto [due, added] = due_.try_emplace(provider->config().name, now());
      if (due->second > now()) continue;
      due->second = TimePoint::max();
      spawn(probe(catalog, provider));
    }
    http::Pending<bool> pending;
    http::Deadline tick(loop_, [&pending] { pending.set(true); });
    tick.set(now() + kLook);
    wake_ = [&pending] { pending.set(false); };
    (void)co_await pending.get();
    wake_ = nullptr;
  }
}

http::Task<> HealthProber::probe(std::shared_ptr<const Catalog> catalog, std::shared_ptr<Provider> provider) {
  const bool well = co_await ask(*provider);
  for (const auto& [name, target] : catalog->targets()) {
    if (target->provider != provider) continue;
    if (well) {
      target->circuit.succeeded();
    } else {
      target->circuit.failed(now());
    }
  }
  due_[provider->config().name] = now() + provider->config().health.interval;
}

http::Task<bool> HealthProber::ask(const Provider& provider) {
  const std::string& path = provider.config().health.path;
  std::string asked =
      path.empty() ? provider.path_of(provider.dialect().health_path()) : provider.root_path(path);
  const http::ClientResult<InquiryAnswer> answer =
      co_await inquire(provider, std::move(asked), 0, loop_, resolver_, now() + kPatience);
  // A provider that asks to be left alone, or does not know the key, is well.
  co_return answer.has_value() && answer->status < 500;
}

}  // namespace waybill::upstream
