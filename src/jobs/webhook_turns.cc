#include "jobs/webhook_turns.h"

#include <algorithm>
#include <utility>

namespace waybill::jobs {
namespace {

constexpr std::size_t kWaitingForEach = 8;  // deliveries that wait for each that may be out

constexpr Duration kLongestPause = std::chrono::minutes(1);

}  // namespace

void WebhookTurns::set_concurrency(std::size_t concurrency) {
  concurrency_ = std::max<std::size_t>(concurrency, 1);
  of_host_ = std::max<std::size_t>(concurrency_ / 4, 1);
}

std::size_t WebhookTurns::room() const noexcept {
  const std::size_t most = concurrency_ * kWaitingForEach;
  return most > waiting_ ? most - waiting_ : 0;
}

bool WebhookTurns::add(Turn turn) {
  const auto [found, added] = hosts_.try_emplace(turn.host);
  if (found->second.waiting.size() >= of_host_ * kWaitingForEach) return false;
  found->second.waiting.push_back(std::move(turn));
  ++waiting_;
  return true;
}

std::optional<WebhookTurns::Turn> WebhookTurns::next(TimePoint now) {
  if (out_ >= concurrency_) return std::nullopt;
  std::optional<Turn> turn;
  auto at = hosts_.upper_bound(last_);
  for (std::size_t left = hosts_.size(); left > 0 && !turn; --left) {
    if (at == hosts_.end()) at = hosts_.begin();
    Host& host = at->second;
    while (!host.waiting.empty() && host.waiting.front().until <= now) {
      host.waiting.pop_front();
      --waiting_;
    }
    if (host.out == 0 && host.waiting.empty() && host.paused_until <= now) {
      at = hosts_.erase(at);
      continue;
    }
    if (!host.waiting.empty() && host.out < of_host_ && host.paused_until <= now) {
      turn.emplace(std::move(host.waiting.front()));
      host.waiting.pop_front();
      --waiting_;
      ++host.out;
      ++out_;
      last_ = at->first;
    }
    ++at;
  }
  return turn;
}

void WebhookTurns::ended(std::string_view host) {
  --out_;
  const auto found = hosts_.find(host);
  if (found != hosts_.end()) --found->second.out;
}

void WebhookTurns::pause(std::string_view host, Duration wait, TimePoint now) {
  const auto found = hosts_.find(host);
  if (found == hosts_.end()) return;
  found->second.paused_until = std::max(found->second.paused_until, now + std::min(wait, kLongestPause));
}

}  // namespace waybill::jobs
