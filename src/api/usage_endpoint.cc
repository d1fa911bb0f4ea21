// GET /v1/usage: what each caller, and each tag of callers, has spent and may spend.
#include <chrono>
#include <map>

#include "api/endpoint.h"
#include "api/gateway.h"
#include "base/json_writer.h"

namespace waybill::api {
namespace {

constexpr double kDollar = 1e9;  // of the accounts' unit
constexpr int kSignificantDigits = 15;

struct Spent {
  std::uint64_t today = 0, this_month = 0;
  std::size_t callers = 0;
};

void write_spent(JsonWriter& json, std::uint64_t today, std::uint64_t this_month) {
  json.key("today_usd").number(static_cast<double>(today) / kDollar, kSignificantDigits);
  json.key("this_month_usd").number(static_cast<double>(this_month) / kDollar, kSignificantDigits);
}

void write_budget(JsonWriter& json, std::string_view name, double budget) {
  json.key(name);
  if (budget > 0) {
    json.number(budget, kSignificantDigits);
  } else {
    json.null();
  }
}

void write_caller(JsonWriter& json, const Caller& caller, const upstream::CallerSpending& spent) {
  json.begin_object().key("caller").string(caller.name).key("tags").begin_array();
  for (const std::string& tag : caller.tags) json.string(tag);
  json.end_array();
  write_spent(json, spent.today, spent.this_month);
  write_budget(json, "budget_per_day_usd", caller.limits.budget_per_day);
  write_budget(json, "budget_per_month_usd", caller.limits.budget_per_month);
  json.key("budget_mode").string(caller.limits.budget_mode == config::BudgetMode::kHard ? "hard" : "warn");
  json.key("in_flight").integer(static_cast<std::int64_t>(caller.account->in_flight())).end_object();
}

}  // namespace

http::Task<Status> usage(Gateway& /*gateway*/, Call& call) {
  const upstream::UtcTime utc = std::chrono::system_clock::now();
  std::map<std::string_view, Spent> by_tag;
  JsonWriter json(call.response().body);
  json.begin_object().key("object").string("list").key("data").begin_array();
  for (const Caller* caller : call.deployment->keys.callers()) {
    const upstream::CallerSpending spent = caller->account->spending(utc);
    write_caller(json, *caller, spent);
    for (const std::string& tag : caller->tags) {
      Spent& sum = by_tag[tag];
      sum.today += spent.today;
      sum.this_month += spent.this_month;
      ++sum.callers;
    }
  }
  json.end_array().key("tags").begin_array();
  for (const auto& [tag, sum] : by_tag) {
    json.begin_object().key("tag").string(tag);
    json.key("callers").integer(static_cast<std::int64_t>(sum.callers));
    write_spent(json, sum.today, sum.this_month);
    json.end_object();
  }
  json.end_array().end_object();
  co_return Status{};
}

}  // namespace waybill::api
