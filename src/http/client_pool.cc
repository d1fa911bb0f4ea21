#include "http/client_pool.h"

#include <algorithm>
#include <utility>

namespace waybill::http {
namespace {

constexpr Duration kReapEvery = std::chrono::seconds(2);

TimePoint now() noexcept { return std::chrono::steady_clock::now(); }

}  // namespace

ClientPool::ClientPool(EventLoop& loop) : loop_(loop), reaping_(loop, [this] { reap(); }) {}

std::unique_ptr<ClientConnection> ClientPool::make(const std::shared_ptr<const Origin>& origin,
                                                   Resolver& resolver) {
  return std::make_unique<ClientConnection>(loop_, resolver, origin);
}

std::unique_ptr<ClientConnection> ClientPool::take(const std::shared_ptr<const Origin>& origin,
                                                   Resolver& resolver) {
  const auto found = idle_.find(origin);
  // The latest first: the others may end by themselves, and so the load's own size is what is kept.
  while (found != idle_.end() && !found->second.empty()) {
    std::unique_ptr<ClientConnection> connection = std::move(found->second.back().connection);
    found->second.pop_back();
    if (connection->is_stale()) continue;
    connection->start_reuse();
    return connection;
  }
  return make(origin, resolver);
}

void ClientPool::give_back(std::unique_ptr<ClientConnection> connection) {
  if (!connection->is_reusable()) return;
  std::vector<Idle>& idle = idle_[connection->origin()];
  if (idle.size() >= kMostIdle) return;
  idle.push_back({std::move(connection), now()});
  if (idle.size() == 1) reaping_.set(now() + kReapEvery);
}

void ClientPool::reap() {
  bool any = false;
  for (auto origin = idle_.begin(); origin != idle_.end();) {
    std::vector<Idle>& idle = origin->second;
    const TimePoint oldest = now() - kIdleTime;
    std::erase_if(idle,
                  [oldest](const Idle& each) { return each.since < oldest || each.connection->is_stale(); });
    any = any || !idle.empty();
    origin = idle.empty() ? idle_.erase(origin) : std::next(origin);
  }
  if (any) reaping_.set(now() + kReapEvery);
}

}  // namespace waybill::http
