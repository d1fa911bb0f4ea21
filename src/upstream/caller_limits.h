// What one caller may use: requests and tokens a minute, calls at a time, models, money.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "base/token_bucket.h"
#include "config/upstream_config.h"

namespace waybill::upstream {

enum class CallerLimit : std::uint8_t { kModel, kConcurrency, kBudgetDay, kBudgetMonth, kRequests, kTokens };
[[nodiscard]] std::string_view to_string(
    CallerLimit limit) noexcept;  // "model", "concurrency", "budget_day", ...

using UtcTime = std::chrono::sys_time<std::chrono::nanoseconds>;

// Both clocks, read together: one for limits, one for the calendar of budgets.
struct CallerTime {
  TimePoint now;
  UtcTime utc;
};

// What a call is expected to take.
struct CallerDemand {
  std::string_view model;      // as it was asked for
  std::uint64_t tokens = 0;    // of the prompt, and as many as the answer may have
  std::uint64_t nano_usd = 0;  // what that would cost; 0: not known
};

struct CallerRefusal {
  CallerLimit limit = CallerLimit::kRequests;
  // kPermissionDenied (the model), kQuotaExceeded (a budget), kRateLimited (the rest); retry_after says when
  // it frees.
  Error error;
};

// US dollars, in billionths, of the UTC day and month that `day` (days since 1970) is in.
struct CallerSpending {
  std::int64_t day = 0;
  std::uint64_t today = 0, this_month = 0;
};

class CallerAccount;

// A call of a caller, from admission to its end. Destroyed without settle(): it came to nothing, and all that
// was taken is given back. Move-only; the account outlives it.
class CallerPass {
 public:
  CallerPass() = default;
  CallerPass(CallerPass&& other) noexcept { swap(other); }
  CallerPass& operator=(CallerPass&& other) noexcept {
    CallerPass(std::move(other)).swap(*this);
    return *this;
  }
  ~CallerPass();

  // The call has ended, and used and cost this.
  void settle(std::uint64_t tokens, std::uint64_t nano_usd, CallerTime time);
  // A budget in warning mode is used up.
  [[nodiscard]] bool over_budget() const noexcept { return over_budget_; }

 private:
  friend class CallerAccount;
  CallerPass(CallerAccount& account, const CallerDemand& demand, TimePoint admitted, bool over_budget)
      : account_(&account),
        tokens_(demand.tokens),
        nano_usd_(demand.nano_usd),
        admitted_(admitted),
        over_budget_(over_budget) {}
  void swap(CallerPass& other) noexcept {
    std::swap(account_, other.account_);
    std::swap(tokens_, other.tokens_);
    std::swap(nano_usd_, other.nano_usd_);
    std::swap(admitted_, other.admitted_);
    std::swap(over_budget_, other.over_budget_);
  }

  CallerAccount* account_ = nullptr;
  std::uint64_t tokens_ = 0, nano_usd_ = 0;
  TimePoint admitted_{};
  bool over_budget_ = false;
};

// The limits of one caller and what is used of them. Money of calls under way counts as expected until they
// are settled, so that a hard budget is kept by calls at the same time too. Thread-safe; a short lock.
class CallerAccount {
 public:
  // For x-ratelimit-*. Limit 0: there is none.
  struct Rate {
    std::uint64_t limit = 0, remaining = 0;
    Duration reset{};  // until it is full
  };
  struct Rates {
    Rate requests, tokens;
  };

  // `name` is that of the key, as errors tell it.
  CallerAccount(std::string name, const config::CallerLimits& limits);

  // All limits are asked before anything is taken: a refused call burns nothing.
  [[nodiscard]] std::expected<CallerPass, CallerRefusal> admit(const CallerDemand& demand, CallerTime time);
  [[nodiscard]] bool may_use(std::string_view model) const;

  // Other limits; what is used stays used.
  void configure(const config::CallerLimits& limits, TimePoint now);

  [[nodiscard]] Rates rates(TimePoint now) const;
  [[nodiscard]] std::size_t in_flight() const;
  [[nodiscard]] CallerSpending spending(UtcTime utc) const;
  // What was spent before this program was started.
  void restore(const CallerSpending& spent);

 private:
  friend class CallerPass;
  using Refusal = std::unexpected<CallerRefusal>;

  // With the lock held:
  [[nodiscard]] bool allows(std::string_view model) const;
  [[nodiscard]] bool exceeds(double budget_usd, std::uint64_t spent, std::uint64_t expected) const noexcept;
  [[nodiscard]] Refusal refuse_concurrency() const;
  [[nodiscard]] Refusal refuse_budget(CallerLimit limit, UtcTime utc) const;
  [[nodiscard]] Refusal refuse_rate(CallerLimit limit, Duration wait) const;

  const std::string name_;
  mutable std::mutex mutex_;  // guards all that follows
  config::CallerLimits limits_;
  TokenBucket requests_, tokens_;
  std::size_t in_flight_ = 0;
  double seconds_per_call_ = 0;  // a moving average; 0: not known
  std::uint64_t expected_ = 0;   // nano USD, of calls under way
  CallerSpending spent_;
};

}  // namespace waybill::upstream
