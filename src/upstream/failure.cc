#include "upstream/failure.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>

#include <fmt/format.h>

namespace waybill::upstream {
namespace {

constexpr Duration kLongest = std::chrono::hours(24);  // what is longer is a mistake of the sender's

std::optional<Duration> of_seconds(double value) noexcept {
  if (!std::isfinite(value) || value < 0) return std::nullopt;
  return std::min(kLongest, std::chrono::duration_cast<Duration>(std::chrono::duration<double>(
                                std::min(value, std::chrono::duration<double>(kLongest).count()))));
}

std::optional<double> number(std::string_view text) noexcept {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The date of RFC 9110 section 5.6.7, in the form that is sent today.
std::optional<Duration> until_date(std::string_view text) {
  std::tm parts{};
  const std::string owned(text);
  const char* end = ::strptime(owned.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  // In seconds, as a clock of nanoseconds ends in the year 2262.
  const std::time_t left = ::timegm(&parts) - std::time(nullptr);
  const std::time_t most = kLongest / std::chrono::seconds(1);
  return std::chrono::seconds(std::clamp<std::time_t>(left, 0, most));
}

// The provider's own words, short and in one line: they go into logs and answers.
std::string shortened(std::string text) {
  constexpr std::size_t kMost = 300;
  if (text.size() > kMost) {
    std::size_t cut = kMost;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;
    text.resize(cut);
    text += "...";
  }
  std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return text;
}

// The request itself is wrong, whoever is asked.
bool is_clients_fault(unsigned status) noexcept {
  switch (status) {
    case 400:
    case 405:
    case 406:
    case 411:
    case 413:
    case 414:
    case 415:
    case 422:
    case 451:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string_view to_string(FailureKind kind) noexcept {
  switch (kind) {
    case FailureKind::kConnect:
      return "connect";
    case FailureKind::kTimeout:
      return "timeout";
    case FailureKind::kClosed:
      return "closed";
    case FailureKind::kProtocol:
      return "protocol";
    case FailureKind::kStatus:
      return "status";
    case FailureKind::kErrorFrame:
      return "error_frame";
    case FailureKind::kMalformed:
      return "malformed";
    case FailureKind::kEmpty:
      return "empty";
    case FailureKind::kRefused:
      return "refused";
  }
  return "unknown";
}

Failure failure_of(const http::ClientError& error) {
  FailureKind kind = FailureKind::kClosed;
  switch (error.fault) {
    case http::ClientFault::kTimeout:
      kind = FailureKind::kTimeout;
      break;
    case http::ClientFault::kRefused:
      kind = FailureKind::kConnect;
      break;
    case http::ClientFault::kMalformed:
      kind = FailureKind::kProtocol;
      break;
    case http::ClientFault::kClosed:
    case http::ClientFault::kCancelled:
      break;
  }
  return {.kind = kind,
          .message = fmt::format("{}: {}", to_string(error.stage), shortened(error.message)),
          .body = {},
          .retry_after = {},
          .stale = error.stale,
          .stage = kind == FailureKind::kTimeout ? to_string(error.stage) : std::string_view()};
}

Failure failure_of(const AnswerFault& fault) {
  FailureKind kind = FailureKind::kMalformed;
  switch (fault.kind) {
    case AnswerFault::Kind::kMalformed:
      break;
    case AnswerFault::Kind::kEmpty:
      kind = FailureKind::kEmpty;
      break;
    case AnswerFault::Kind::kError:
      kind = is_clients_fault(fault.status) ? FailureKind::kRefused : FailureKind::kErrorFrame;
      break;
    case AnswerFault::Kind::kCut:
      kind = FailureKind::kClosed;
      break;
  }
  return {.kind = kind,
          .status = fault.status,
          .message = shortened(fault.message),
          .body = {},
          .retry_after = {}};
}

Failure failure_of(const http::ResponseHead& head, std::string_view body, const Dialect& dialect) {
  std::string message;
  std::string told = dialect.refusal(head.status, body, message);
  Failure failure{.kind = is_clients_fault(head.status) ? FailureKind::kRefused : FailureKind::kStatus,
                  .status = head.status,
                  .message = fmt::format("answered {}: {}", head.status, shortened(std::move(message))),
                  .body = {},
                  .retry_after = retry_after(head)};
  failure.body = std::move(told);
  if (const std::string_view text = head.header("x-should-retry"); !text.empty())
    failure.should_retry = text == "true";
  return failure;
}

std::optional<Duration> parse_reset(std::string_view text) noexcept {
  if (text.empty()) return std::nullopt;
  if (const auto seconds = number(text)) return of_seconds(*seconds);
  double total = 0;
  while (!text.empty()) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.starts_with("ms")) {
      total += value * 1e-3;
      text.remove_prefix(2);
    } else if (text.starts_with('s')) {
      total += value;
      text.remove_prefix(1);
    } else if (text.starts_with('m')) {
      total += value * 60;
      text.remove_prefix(1);
    } else if (text.starts_with('h')) {
      total += value * 3600;
      text.remove_prefix(1);
    } else if (text.starts_with('d')) {
      total += value * 86400;
      text.remove_prefix(1);
    } else {
      return std::nullopt;
    }
  }
  return of_seconds(total);
}

std::optional<Duration> retry_after(const http::ResponseHead& head) {
  if (const auto ms = number(head.header("retry-after-ms"))) return of_seconds(*ms * 1e-3);
  if (const std::string_view text = head.header("retry-after"); !text.empty()) {
    if (const auto seconds = number(text)) return of_seconds(*seconds);
    if (const auto left = until_date(text)) return left;
  }
  std::optional<Duration> longest;
  for (const std::string_view what : {"requests", "tokens"}) {
    if (head.header(fmt::format("x-ratelimit-remaining-{}", what)) != "0") continue;
    const auto reset = parse_reset(head.header(fmt::format("x-ratelimit-reset-{}", what)));
    if (reset && (!longest || *reset > *longest)) longest = reset;
  }
  return longest;
}

Error error_of(const Failure& failure, std::string_view target, unsigned attempts) {
  Error error{.code = ErrorCode::kUpstreamFailed, .message = {}, .field = {}};
  if (failure.kind == FailureKind::kTimeout) error.code = ErrorCode::kUpstreamTimeout;
  if (failure.status == 429 || failure.status == 529 || failure.status == 503)
    error.code = ErrorCode::kRateLimited;
  error.message = fmt::format("No provider could answer ({} {}); the last was {}: {}", attempts,
                              attempts == 1 ? "call" : "calls", target, failure.message);
  if (error.code == ErrorCode::kRateLimited)
    error.retry_after = failure.retry_after.value_or(Duration::zero());
  return error;
}

}  // namespace waybill::upstream
