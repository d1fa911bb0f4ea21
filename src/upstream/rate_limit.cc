#include "upstream/rate_limit.h"

#include <algorithm>
#include <charconv>

namespace waybill::upstream {
namespace {

std::optional<std::uint64_t> whole(std::string_view text) noexcept {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string_view to_string(RateKind kind) noexcept {
  return kind == RateKind::kRequests ? "requests" : "tokens";
}

std::optional<ToldRate> read_told_rate(std::string_view limit, std::string_view remaining,
                                       std::optional<Duration> reset) noexcept {
  const auto most = whole(limit), left = whole(remaining);
  if (!most || !left || !reset || *most == 0 || *reset < Duration::zero()) return std::nullopt;
  return ToldRate{*most, std::min(*left, *most), *reset};
}

Duration RateLimit::Buckets::wait(double amount, TimePoint now, double before) const noexcept {
  return std::max(configured.wait(amount, now, before), told.wait(amount, now, before));
}

void RateLimit::Buckets::take(double amount, TimePoint now) noexcept {
  configured.take(amount, now);
  told.take(amount, now);
  pending += amount;
}

void RateLimit::Buckets::give_back(double amount) noexcept {
  configured.give_back(amount);
  told.give_back(amount);
}

void RateLimit::Buckets::hear(const std::optional<ToldRate>& rate, TimePoint now) noexcept {
  if (!rate) return;
  const auto limit = static_cast<double>(rate->limit), remaining = static_cast<double>(rate->remaining);
  // One that is full does not say how fast it is refilled.
  const double missing = limit - remaining;
  const double per_second =
      missing > 0 && rate->reset > Duration::zero() ? missing / seconds(rate->reset) : limit / 60;
  told.set(remaining - pending, limit, per_second, now);
}

RateLimit::RateLimit(std::size_t requests, std::size_t tokens) {
  requests_.configured = TokenBucket::of_minute(static_cast<double>(requests));
  tokens_.configured = TokenBucket::of_minute(static_cast<double>(tokens));
}

std::expected<RateReservation, RateLimit::Refusal> RateLimit::reserve(std::uint64_t tokens, TimePoint now) {
  const auto amount = static_cast<double>(tokens);
  const std::lock_guard lock(mutex_);
  const Duration requests_wait = requests_.wait(1, now), tokens_wait = tokens_.wait(amount, now);
  if (std::max(requests_wait, tokens_wait) > Duration::zero()) {
    const bool by_tokens = tokens_wait > requests_wait;
    return std::unexpected(
        Refusal{by_tokens ? RateKind::kTokens : RateKind::kRequests, std::max(requests_wait, tokens_wait)});
  }
  requests_.take(1, now);
  tokens_.take(amount, now);
  return RateReservation(*this, tokens);
}

Duration RateLimit::wait(std::uint64_t tokens, std::size_t requests_before, std::uint64_t tokens_before,
                         TimePoint now) const {
  const std::lock_guard lock(mutex_);
  return std::max(requests_.wait(1, now, static_cast<double>(requests_before)),
                  tokens_.wait(static_cast<double>(tokens), now, static_cast<double>(tokens_before)));
}

void RateLimit::configure(std::size_t requests, std::size_t tokens, TimePoint now) {
  const auto change = [now](TokenBucket& bucket, std::size_t per_minute) {
    const auto limit = static_cast<double>(per_minute);
    if (per_minute == 0) {
      bucket = TokenBucket();
    } else if (limit != bucket.capacity()) {
      bucket.resize(limit, limit / 60, now);
    }
  };
  const std::lock_guard lock(mutex_);
  change(requests_.configured, requests);
  change(tokens_.configured, tokens);
}

RateLimit::Level RateLimit::level(RateKind kind, TimePoint now) const {
  const std::lock_guard lock(mutex_);
  const Buckets& buckets = kind == RateKind::kRequests ? requests_ : tokens_;
  const TokenBucket& told = buckets.told;
  const TokenBucket& configured = buckets.configured;
  const bool by_told =
      told.has_limit() && (!configured.has_limit() || told.level(now) < configured.level(now));
  const TokenBucket& tightest = by_told ? told : configured;
  return {tightest.capacity(), std::max(0.0, tightest.level(now)), tightest.reset(now)};
}

RateReservation::~RateReservation() {
  if (limit_ == nullptr) return;
  const auto amount = static_cast<double>(tokens_);
  const std::lock_guard lock(limit_->mutex_);
  if (!answered_) {
    limit_->requests_.pending -= 1;
    limit_->tokens_.pending -= amount;
  }
  if (!sent_ && !answered_) {
    limit_->requests_.give_back(1);
    limit_->tokens_.give_back(amount);
  }
}

void RateReservation::answered(const ToldRates& told, TimePoint now) {
  if (limit_ == nullptr || answered_) return;
  const std::lock_guard lock(limit_->mutex_);
  answered_ = true;
  limit_->requests_.pending -= 1;
  limit_->tokens_.pending -= static_cast<double>(tokens_);
  limit_->requests_.hear(told.requests, now);
  limit_->tokens_.hear(told.tokens, now);
}

void RateReservation::settle(std::uint64_t tokens, TimePoint now) {
  if (limit_ == nullptr) return;
  const double difference = static_cast<double>(tokens_) - static_cast<double>(tokens);
  const std::lock_guard lock(limit_->mutex_);
  if (!answered_) {
    limit_->requests_.pending -= 1;
    limit_->tokens_.pending -= static_cast<double>(tokens_);
  }
  // What the provider says of its own bucket is not ours to settle.
  if (difference >= 0) {
    limit_->tokens_.configured.give_back(difference);
  } else {
    limit_->tokens_.configured.take(-difference, now);
  }
  limit_ = nullptr;
}

}  // namespace waybill::upstream
