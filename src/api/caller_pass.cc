#include "api/caller_pass.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace waybill::api {
namespace {

upstream::CallerTime both_clocks() {
  return {.now = std::chrono::steady_clock::now(), .utc = std::chrono::system_clock::now()};
}

// "1s", "6m0s", "20ms", as OpenAI writes it.
std::string reset_text(Duration reset) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(reset).count();
  if (ms < 1000) return fmt::format("{}ms", ms);
  if (ms < 60'000) return fmt::format("{:.3g}s", static_cast<double>(ms) / 1000);
  return fmt::format("{}m{}s", ms / 60'000, ms % 60'000 / 1000);
}

struct RateHeaders {
  std::string_view limit, remaining, reset;
};
constexpr RateHeaders kRequests = {"x-ratelimit-limit-requests", "x-ratelimit-remaining-requests",
                                   "x-ratelimit-reset-requests"};
constexpr RateHeaders kTokens = {"x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens",
                                 "x-ratelimit-reset-tokens"};

void add_rate_headers(const RateHeaders& names, const upstream::CallerAccount::Rate& rate,
                      http::Response& response) {
  if (rate.limit == 0) return;
  response.add_header(names.limit, rate.limit);
  response.add_header(names.remaining, rate.remaining);
  response.add_header(names.reset, reset_text(rate.reset));
}

}  // namespace

Status Pass::admit(Call& call, const upstream::ChatRequest& request, const upstream::Model& model) {
  answered_ = false;
  if (call.caller == nullptr || !call.caller->account) return {};
  const std::uint32_t answer = upstream::expected_answer_tokens(request);
  upstream::CallerDemand demand = {
      .model = request.model(), .tokens = std::uint64_t{request.prompt_tokens()} + answer, .nano_usd = 0};
  if (!model.pool.empty()) {  // what is not said is not held against a budget
    demand.nano_usd = call.deployment->catalog->cost_nano_usd(
        *model.pool.front().target, request.model(),
        {.prompt = request.prompt_tokens(), .cached_prompt = 0, .completion = request.max_tokens()});
  }
  return admit(call, demand);
}

Status Pass::admit_answered(Call& call, const upstream::ChatRequest& request) {
  answered_ = true;
  if (call.caller == nullptr || !call.caller->account) return {};
  return admit(call, upstream::CallerDemand{.model = request.model(), .tokens = 0, .nano_usd = 0});
}

Status Pass::admit(Call& call, const upstream::CallerDemand& demand) {
  upstream::CallerAccount& account = *call.caller->account;
  pass_.reset();
  const upstream::CallerTime time = both_clocks();
  auto admitted = account.admit(demand, time);
  if (!std::exchange(told_, true)) {
    const upstream::CallerAccount::Rates rates = account.rates(time.now);
    add_rate_headers(kRequests, rates.requests, call.response());
    add_rate_headers(kTokens, rates.tokens, call.response());
  }
  if (!admitted) return std::unexpected(std::move(admitted.error().error));
  pass_.emplace(std::move(*admitted));
  if (pass_->over_budget()) call.response().add_header("x-waybill-budget", "exceeded");
  return {};
}

void Pass::settle(const upstream::Outcome& outcome) {
  // What never reached a provider has used nothing, but for what another's call has answered.
  const bool is_answer = outcome.facts.attempts > 0 || (answered_ && !outcome.facts.target.empty());
  if (!pass_ || !is_answer) return;
  pass_->settle(std::uint64_t{outcome.usage.prompt} + outcome.usage.completion, outcome.cost_nano_usd,
                both_clocks());
}

}  // namespace waybill::api
