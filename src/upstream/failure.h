// Why a call to a provider came to nothing, and what follows from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "http/client_error.h"
#include "http/response_parser.h"
#include "upstream/dialect.h"

namespace waybill::upstream {

enum class FailureKind : std::uint8_t {
  kConnect,     // nobody there, or no TLS
  kTimeout,     // a stage took longer than it may
  kClosed,      // the connection ended too early
  kProtocol,    // what came was no HTTP
  kStatus,      // a status that says so: 408, 409, 429, 5xx, and what is our configuration's fault (401, 404)
  kErrorFrame,  // an error where the answer should have been, under a status that was good
  kMalformed,   // an answer that cannot be read
  kEmpty,       // an answer without anything in it
  kRefused,     // the provider says that the request is wrong: no other target would like it better
};
[[nodiscard]] std::string_view to_string(FailureKind kind) noexcept;  // "connect", "timeout", ...

struct Failure {
  FailureKind kind = FailureKind::kConnect;
  unsigned status = 0;                    // of HTTP; 0: there was none
  std::string message;                    // for people, without a secret: "headers: nothing came in time"
  std::string body;                       // of an answer with a status from 400 on, in OpenAI's format
  std::optional<Duration> retry_after;    // what the provider asks for
  bool stale = false;                     // of the connection, not of the target
  std::string_view stage = {};            // a literal, of kTimeout: what took too long
  std::optional<bool> should_retry = {};  // as the provider says itself (x-should-retry)

  // Another target may do better.
  [[nodiscard]] bool may_retry() const noexcept { return kind != FailureKind::kRefused; }
  // The same target may do better in a moment.
  [[nodiscard]] bool is_transient() const noexcept {
    const bool by_status = kind == FailureKind::kStatus && !retry_after &&
                           should_retry.value_or(status >= 500 || status == 408 || status == 409);
    return by_status || kind == FailureKind::kConnect || kind == FailureKind::kClosed;
  }
  // It says that the target is in a bad state (and not that it has too much to do).
  [[nodiscard]] bool is_ill() const noexcept {
    return kind != FailureKind::kRefused && status != 429 && status != 404;
  }
};

[[nodiscard]] Failure failure_of(const http::ClientError& error);
[[nodiscard]] Failure failure_of(const AnswerFault& fault);
// Of an answer with a status from 400 on.
[[nodiscard]] Failure failure_of(const http::ResponseHead& head, std::string_view body,
                                 const Dialect& dialect);

// How long the provider asks to be left alone: retry-after-ms, Retry-After (seconds, or a date), else the
// x-ratelimit-reset-* of a limit whose remaining is 0. Nothing where it does not say, or not sensibly.
[[nodiscard]] std::optional<Duration> retry_after(const http::ResponseHead& head);
// "20ms", "1s", "6m0s", "1h2m3.5s", and a bare number of seconds.
[[nodiscard]] std::optional<Duration> parse_reset(std::string_view text) noexcept;

// What the client is told when no target is left to try.
[[nodiscard]] Error error_of(const Failure& failure, std::string_view target, unsigned attempts);

}  // namespace waybill::upstream
