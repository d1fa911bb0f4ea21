#include "api/request_filter.h"

#include <charconv>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "api/query.h"
#include "http/request.h"

namespace waybill::api {
namespace {

// A time (2026-01-31T12:00:00Z), seconds since 1970, or a time back from now (90s, 15m, 2h). Microseconds
// since 1970.
Result<std::int64_t> read_since(const std::string& text) {
  constexpr std::int64_t kSecond = 1'000'000;
  constexpr double kMostSeconds = 1e12;  // their microseconds fit into 64 bits
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, text.data() + text.size());
  if (error == std::errc() && number >= 0 && number < kMostSeconds) {
    const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
    if (unit.empty()) return static_cast<std::int64_t>(number * kSecond);
    for (const auto& [name, length] : {std::pair{"s", 1.0}, {"m", 60.0}, {"h", 3600.0}, {"d", 86400.0}}) {
      if (unit == name && number * length < kMostSeconds)
        return now - static_cast<std::int64_t>(number * length * kSecond);
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

Status read_request_filter(std::string_view query, RequestFilter& out) {
  telemetry::WaybillFilter& filter = out.filter;
  std::string text;
  if (http::query_parameter(query, "outcome", text)) {
    filter.outcome = telemetry::parse_outcome(text);
    if (!filter.outcome) {
      return fail(ErrorCode::kInvalidInput,
                  "\"outcome\" must be completed, failed, rejected, cancelled or expired.", "outcome");
    }
  }
  if (http::query_parameter(query, "route", out.route)) filter.route = out.route;
  if (http::query_parameter(query, "since", text)) {
    const Result<std::int64_t> since = read_since(text);
    if (!since) return std::unexpected(since.error());
    filter.since_us = *since;
  }
  const Result<std::size_t> limit = read_limit(query, filter.limit);
  if (!limit) return std::unexpected(limit.error());
  filter.limit = *limit;
  return {};
}

}  // namespace waybill::api
