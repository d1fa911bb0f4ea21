// What operators ask for: metrics, waybills, the ledger, another configuration.
#include <charconv>
#include <chrono>

#include <fmt/format.h>

#include "api/await.h"
#include "api/endpoint.h"
#include "api/gateway.h"
#include "base/json_writer.h"
#include "telemetry/record_json.h"

namespace waybill::api {
namespace {

constexpr std::size_t kMostListed = 1000;

Result<std::size_t> read_limit(std::string_view text) {
  std::size_t limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (error != std::errc() || end != text.data() + text.size() || limit < 1 || limit > kMostListed) {
    return fail(ErrorCode::kInvalidInput,
                fmt::format("\"limit\" must be a whole number from 1 to {}.", kMostListed), "limit");
  }
  return limit;
}

// A time (2026-01-31T12:00:00Z), seconds since 1970, or a time back from now (90s, 15m, 2h). Microseconds
// since 1970.
Result<std::int64_t> read_since(const std::string& text) {
  constexpr std::int64_t kSecond = 1'000'000;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, text.data() + text.size());
  if (error == std::errc() && number >= 0 && number < 1e11) {
    const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
    if (unit.empty()) return static_cast<std::int64_t>(number * kSecond);
    for (const auto& [name, length] : {std::pair{"s", 1.0}, {"m", 60.0}, {"h", 3600.0}, {"d", 86400.0}}) {
      if (unit == name) return now - static_cast<std::int64_t>(number * length * kSecond);
    }
  }
  std::tm parts{};
  const char* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest != nullptr &&
      (std::string_view(rest) == "Z" || (*rest == '.' && std::string_view(rest).ends_with('Z')))) {
    return static_cast<std::int64_t>(::timegm(&parts)) * kSecond;
  }
  return fail(
      ErrorCode::kInvalidInput,
      fmt::format("\"since\" must be a time such as 2026-01-31T12:00:00Z, seconds since 1970, or a time back "
                  "from now such as 15m; not \"{}\".",
                  text),
      "since");
}

}  // namespace

http::Task<Status> metrics(Gateway& gateway, Call& call) {
  const telemetry::Exposition exposition = telemetry::choose_exposition(call.request().header("accept"));
  call.response().content_type = telemetry::content_type(exposition);
  call.response().body = gateway.telemetry().registry().expose(exposition);
  co_return Status{};
}

http::Task<Status> find_request(Gateway& gateway, Call& call) {
  const std::string_view id = path_argument(call);
  const std::optional<telemetry::Record> record = gateway.telemetry().waybills().find(id);
  if (!record) {
    co_return fail(
        ErrorCode::kNotFound,
        fmt::format("There is no waybill of the request \"{}\": it never came here, or it is too long ago "
                    "(telemetry.waybills.keep).",
                    id.substr(0, 100)),
        "id");
  }
  call.response().body = telemetry::to_json(*record);
  co_return Status{};
}

http::Task<Status> list_requests(Gateway& gateway, Call& call) {
  const std::string_view query = call.request().query;
  telemetry::WaybillFilter filter;
  std::string text, route;
  if (http::query_parameter(query, "outcome", text)) {
    filter.outcome = telemetry::parse_outcome(text);
    if (!filter.outcome) {
      co_return fail(ErrorCode::kInvalidInput,
                     "\"outcome\" must be completed, failed, rejected, cancelled or expired.", "outcome");
    }
  }
  if (http::query_parameter(query, "route", route)) filter.route = route;
  if (http::query_parameter(query, "since", text)) {
    const Result<std::int64_t> since = read_since(text);
    if (!since) co_return std::unexpected(since.error());
    filter.since_us = *since;
  }
  if (http::query_parameter(query, "limit", text)) {
    const Result<std::size_t> limit = read_limit(text);
    if (!limit) co_return std::unexpected(limit.error());
    filter.limit = *limit;
  }
  JsonWriter json(call.response().body);
  json.begin_object().key("object").string("list").key("data").begin_array();
  for (const telemetry::Record& record : gateway.telemetry().waybills().list(filter))
    telemetry::write_record(json, record);
  json.end_array().end_object();
  co_return Status{};
}

http::Task<Status> ledger(Gateway& gateway, Call& call) {
  call.response().body = telemetry::to_json(gateway.telemetry().check_ledger());
  co_return Status{};
}

http::Task<Status> reload(Gateway& gateway, Call& call) {
  auto start = [&gateway, &call](std::move_only_function<void(Result<std::string>)>&& done) {
    gateway.reload(call.exchange.loop(), std::move(done));
    return std::optional<Result<std::string>>();
  };
  Result<std::string> done = co_await await_answer<std::string>(call.exchange, start);
  if (!done) co_return std::unexpected(done.error());
  JsonWriter json(call.response().body);
  json.begin_object().key("status").string("reloaded").key("message").string(*done).end_object();
  co_return Status{};
}

}  // namespace waybill::api
