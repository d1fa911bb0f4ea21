// What a provider lets through in a minute: as configured, and as it says itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/token_bucket.h"

namespace waybill::upstream {

enum class RateKind : std::uint8_t { kRequests, kTokens };
[[nodiscard]] std::string_view to_string(RateKind kind) noexcept;  // "requests", "tokens"

// One of the provider's limits, as x-ratelimit-{limit,remaining,reset}-* tell it: `reset` until it is full.
struct ToldRate {
  std::uint64_t limit = 0, remaining = 0;
  Duration reset{};
};
struct ToldRates {
  std::optional<ToldRate> requests, tokens;
};
// From the texts of one of them ("60", "59", "1s"). Nothing where one is missing or makes no sense.
[[nodiscard]] std::optional<ToldRate> read_told_rate(std::string_view limit, std::string_view remaining,
                                                     std::optional<Duration> reset) noexcept;

class RateLimit;

// One request and its tokens, taken from the limits before the call. Destroyed: what was not sent is given
// back, what was sent counts as reserved. Move-only; the limits outlive it.
class RateReservation {
 public:
  RateReservation() = default;
  RateReservation(RateReservation&& other) noexcept { swap(other); }
  RateReservation& operator=(RateReservation&& other) noexcept {
    RateReservation(std::move(other)).swap(*this);
    return *this;
  }
  ~RateReservation();

  // The provider counts it from now on.
  void sent() noexcept { sent_ = true; }
  // The head of its answer has come, with what the provider says of its limits.
  void answered(const ToldRates& told, TimePoint now);
  // The call has ended and used so many tokens: the difference to the estimate is settled.
  void settle(std::uint64_t tokens, TimePoint now);

 private:
  friend class RateLimit;
  RateReservation(RateLimit& limit, std::uint64_t tokens) : limit_(&limit), tokens_(tokens) {}
  void swap(RateReservation& other) noexcept {
    std::swap(limit_, other.limit_);
    std::swap(tokens_, other.tokens_);
    std::swap(sent_, other.sent_);
    std::swap(answered_, other.answered_);
  }

  RateLimit* limit_ = nullptr;  // null: nothing is reserved, or it is settled
  std::uint64_t tokens_ = 0;
  bool sent_ = false, answered_ = false;
};

// The limits of one provider. Those it tells of itself hold beside those configured, refilled at the rate
// that (limit - remaining) / reset says, be it by the minute or by the day; what has been reserved and not
// answered yet is taken off what it says remains. Thread-safe; a short lock.
class RateLimit {
 public:
  struct Refusal {
    RateKind kind = RateKind::kRequests;
    Duration wait{};  // until it would be granted, if nothing else was
  };
  struct Level {
    double limit = 0, remaining = 0;  // of the tightest; 0 and 0: no limit
    Duration reset{};
  };

  // Per minute; 0: not limited.
  RateLimit(std::size_t requests, std::size_t tokens);

  // All or nothing. `tokens`: estimated of the prompt, and as many as the answer may have.
  [[nodiscard]] std::expected<RateReservation, Refusal> reserve(std::uint64_t tokens, TimePoint now);
  // How long until a call would be granted that comes after so many others.
  [[nodiscard]] Duration wait(std::uint64_t tokens, std::size_t requests_before, std::uint64_t tokens_before,
                              TimePoint now) const;
  void configure(std::size_t requests, std::size_t tokens, TimePoint now);
  [[nodiscard]] Level level(RateKind kind, TimePoint now) const;

 private:
  friend class RateReservation;
  // Of one kind.
  struct Buckets {
    TokenBucket configured, told;
    double pending = 0;  // reserved, not answered yet

    [[nodiscard]] Duration wait(double amount, TimePoint now, double before = 0) const noexcept;
    void take(double amount, TimePoint now) noexcept;
    void give_back(double amount) noexcept;
    void hear(const std::optional<ToldRate>& rate, TimePoint now) noexcept;
  };

  mutable std::mutex mutex_;  // guards both
  Buckets requests_, tokens_;
};

}  // namespace waybill::upstream
