// How every expected failure is returned.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace waybill {

// What kind of failure it is, for the code that reacts to it. The message is for people.
enum class ErrorCode : std::uint8_t {
  kInvalidInput,      // what was given is wrong; `field` names it where there is one
  kNotFound,          // a file, a route, a model that is not there
  kUnsupported,       // well-formed, but not something this program does
  kCorrupt,           // a file that is damaged, truncated or not what its name says
  kIo,                // the operating system refused
  kUnauthenticated,   // no valid credentials
  kPermissionDenied,  // they do not suffice
  kMethodNotAllowed,  // the right place, the wrong verb
  kOverloaded,        // a bounded queue is full, or the wait would pass the deadline
  kRateLimited,       // a limit of the caller's, or of a provider, is used up for now
  kQuotaExceeded,     // a budget is used up
  kKeyReused,         // an idempotency key that came with something else before
  kUpstreamFailed,    // a provider could not be reached, or did not answer as it should
  kUpstreamTimeout,   // a provider took longer than it may
  kDeadlineExceeded,  // the deadline passed while it waited or ran
  kCancelled,         // the caller took it back
  kShuttingDown,      // the part that would have done it is being stopped
  kStoreUnavailable,  // what was to be kept cannot be written: the disk is full, or has lost writes
  kInternal,          // our own bug
};

[[nodiscard]] std::string_view to_string(ErrorCode code) noexcept;  // "invalid_input", "not_found", ...

// A failure, told in a sentence that says what to change.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::string field;  // the input field or setting at fault ("routes[2].threshold"), or empty
  std::chrono::nanoseconds
      retry_after{};  // kOverloaded, kRateLimited: when it may be tried again; zero: not known
};

}  // namespace waybill
