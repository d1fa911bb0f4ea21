#include "upstream/caller_limits.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace waybill::upstream {
namespace {

using std::chrono::days;
using std::chrono::sys_days;
using std::chrono::year_month_day;

sys_days day_of(UtcTime utc) { return std::chrono::floor<days>(utc); }

bool same_month(std::int64_t a, std::int64_t b) {
  const year_month_day first{sys_days{days(a)}}, second{sys_days{days(b)}};
  return first.year() == second.year() && first.month() == second.month();
}

// What is left of it when it is `utc`.
void turn(CallerSpending& spent, UtcTime utc) {
  const std::int64_t today = day_of(utc).time_since_epoch().count();
  if (today <= spent.day) return;  // also a wall clock that was set back: nothing may be spent twice
  if (!same_month(today, spent.day)) spent.this_month = 0;
  spent.today = 0;
  spent.day = today;
}

Duration until_next_day(UtcTime utc) { return day_of(utc) + days(1) - utc; }

Duration until_next_month(UtcTime utc) {
  const year_month_day today{day_of(utc)};
  const auto next = (today.year() / today.month() + std::chrono::months(1)) / 1;
  return sys_days{next} - utc;
}

TokenBucket bucket_of(std::size_t per_minute) {
  return TokenBucket::of_minute(static_cast<double>(per_minute));
}

void resize(TokenBucket& bucket, std::size_t per_minute, TimePoint now) {
  const auto limit = static_cast<double>(per_minute);
  if (per_minute == 0) {
    bucket = TokenBucket();
  } else if (limit != bucket.capacity()) {
    bucket.resize(limit, limit / 60, now);
  }
}

CallerAccount::Rate rate_of(const TokenBucket& bucket, TimePoint now) {
  return {static_cast<std::uint64_t>(bucket.capacity()),
          static_cast<std::uint64_t>(std::max(0.0, bucket.level(now))), bucket.reset(now)};
}

std::unexpected<CallerRefusal> refuse(CallerLimit limit, ErrorCode code, std::string message,
                                      std::string field, Duration wait) {
  return std::unexpected(CallerRefusal{limit, Error{code, std::move(message), std::move(field), wait}});
}

}  // namespace

std::string_view to_string(CallerLimit limit) noexcept {
  switch (limit) {
    case CallerLimit::kModel:
      return "model";
    case CallerLimit::kConcurrency:
      return "concurrency";
    case CallerLimit::kBudgetDay:
      return "budget_day";
    case CallerLimit::kBudgetMonth:
      return "budget_month";
    case CallerLimit::kRequests:
      return "requests";
    case CallerLimit::kTokens:
      return "tokens";
  }
  return "unknown";
}

CallerAccount::CallerAccount(std::string name, const config::CallerLimits& limits)
    : name_(std::move(name)),
      limits_(limits),
      requests_(bucket_of(limits.requests_per_minute)),
      tokens_(bucket_of(limits.tokens_per_minute)) {}

std::expected<CallerPass, CallerRefusal> CallerAccount::admit(const CallerDemand& demand, CallerTime time) {
  const std::lock_guard lock(mutex_);
  if (!allows(demand.model)) {
    return refuse(
        CallerLimit::kModel, ErrorCode::kPermissionDenied,
        fmt::format(
            "The key \"{}\" may not use the model \"{}\"; ask for one that it may use, or have it added "
            "to the key's models.",
            name_, demand.model),
        "model", Duration::zero());
  }
  if (limits_.concurrency != 0 && in_flight_ >= limits_.concurrency) return refuse_concurrency();

  turn(spent_, time.utc);
  const bool over_day = exceeds(limits_.budget_per_day, spent_.today, demand.nano_usd);
  const bool over_month = exceeds(limits_.budget_per_month, spent_.this_month, demand.nano_usd);
  if (limits_.budget_mode == config::BudgetMode::kHard && (over_day || over_month)) {
    return refuse_budget(over_month ? CallerLimit::kBudgetMonth : CallerLimit::kBudgetDay, time.utc);
  }

  const auto tokens = static_cast<double>(demand.tokens);
  const Duration requests_wait = requests_.wait(1, time.now), tokens_wait = tokens_.wait(tokens, time.now);
  if (std::max(requests_wait, tokens_wait) > Duration::zero()) {
    const bool by_tokens = tokens_wait > requests_wait;
    return refuse_rate(by_tokens ? CallerLimit::kTokens : CallerLimit::kRequests,
                       std::max(requests_wait, tokens_wait));
  }
  requests_.take(1, time.now);
  tokens_.take(tokens, time.now);
  ++in_flight_;
  expected_ += demand.nano_usd;
  return CallerPass(*this, demand, time.now, over_day || over_month);
}

CallerAccount::Refusal CallerAccount::refuse_concurrency() const {
  const double wait =
      seconds_per_call_ > 0 ? seconds_per_call_ / static_cast<double>(limits_.concurrency) : 1;
  return refuse(
      CallerLimit::kConcurrency, ErrorCode::kRateLimited,
      fmt::format("The key \"{}\" has {} calls under way, which is its limit; wait until one of them ends.",
                  name_, in_flight_),
      {}, Duration(static_cast<Duration::rep>(wait * 1e9)));
}

CallerAccount::Refusal CallerAccount::refuse_budget(CallerLimit limit, UtcTime utc) const {
  const bool month = limit == CallerLimit::kBudgetMonth;
  return refuse(
      limit, ErrorCode::kQuotaExceeded,
      fmt::format(
          "The budget of the key \"{}\", ${:.2f} a {}, is used up (${:.2f} spent); it starts anew with "
          "the next {} in UTC.",
          name_, month ? limits_.budget_per_month : limits_.budget_per_day, month ? "month" : "day",
          static_cast<double>(month ? spent_.this_month : spent_.today) * 1e-9, month ? "month" : "day"),
      {}, month ? until_next_month(utc) : until_next_day(utc));
}

CallerAccount::Refusal CallerAccount::refuse_rate(CallerLimit limit, Duration wait) const {
  const bool tokens = limit == CallerLimit::kTokens;
  return refuse(limit, ErrorCode::kRateLimited,
                fmt::format("The key \"{}\" has used up its limit of {} {} a minute; try again in {:.1f} s.",
                            name_, tokens ? limits_.tokens_per_minute : limits_.requests_per_minute,
                            tokens ? "tokens" : "requests", seconds(wait)),
                {}, wait);
}

bool CallerAccount::allows(std::string_view model) const {
  return limits_.models.empty() || std::ranges::find(limits_.models, model) != limits_.models.end();
}

bool CallerAccount::may_use(std::string_view model) const {
  const std::lock_guard lock(mutex_);
  return allows(model);
}

// Used up, or this call would pass it.
bool CallerAccount::exceeds(double budget_usd, std::uint64_t spent, std::uint64_t expected) const noexcept {
  if (!(budget_usd > 0)) return false;
  const double budget = budget_usd * 1e9, used = static_cast<double>(spent + expected_);
  return used >= budget || used + static_cast<double>(expected) > budget;
}

void CallerAccount::configure(const config::CallerLimits& limits, TimePoint now) {
  const std::lock_guard lock(mutex_);
  limits_ = limits;
  resize(requests_, limits.requests_per_minute, now);
  resize(tokens_, limits.tokens_per_minute, now);
}

CallerAccount::Rates CallerAccount::rates(TimePoint now) const {
  const std::lock_guard lock(mutex_);
  return {rate_of(requests_, now), rate_of(tokens_, now)};
}

std::size_t CallerAccount::in_flight() const {
  const std::lock_guard lock(mutex_);
  return in_flight_;
}

CallerSpending CallerAccount::spending(UtcTime utc) const {
  const std::lock_guard lock(mutex_);
  CallerSpending spent = spent_;
  turn(spent, utc);
  return spent;
}

void CallerAccount::restore(const CallerSpending& spent) {
  const std::lock_guard lock(mutex_);
  spent_ = spent;
}

CallerPass::~CallerPass() {
  if (account_ == nullptr) return;
  const std::lock_guard lock(account_->mutex_);
  --account_->in_flight_;
  account_->expected_ -= nano_usd_;
  account_->requests_.give_back(1);
  account_->tokens_.give_back(static_cast<double>(tokens_));
}

void CallerPass::settle(std::uint64_t tokens, std::uint64_t nano_usd, CallerTime time) {
  if (account_ == nullptr) return;
  constexpr double kWeight = 0.1;  // of the latest call in the average
  CallerAccount& account = *std::exchange(account_, nullptr);
  const double took = std::max(0.0, seconds(time.now - admitted_));
  const std::lock_guard lock(account.mutex_);
  --account.in_flight_;
  account.expected_ -= nano_usd_;
  account.seconds_per_call_ +=
      (account.seconds_per_call_ > 0 ? kWeight : 1) * (took - account.seconds_per_call_);
  turn(account.spent_, time.utc);
  account.spent_.today += nano_usd;
  account.spent_.this_month += nano_usd;
  if (tokens <= tokens_) {
    account.tokens_.give_back(static_cast<double>(tokens_ - tokens));
  } else {
    account.tokens_.take(static_cast<double>(tokens - tokens_), time.now);
  }
}

}  // namespace waybill::upstream
