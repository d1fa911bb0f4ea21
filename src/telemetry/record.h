// What is known of one request: the contents of a waybill. docs/waybills.md shows it as JSON.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/uuid.h"
#include "telemetry/inline_string.h"
#include "telemetry/trace_context.h"

namespace waybill::telemetry {

// How a request ended. Every accepted request ends in exactly one of them.
enum class Outcome : std::uint8_t {
  kCompleted,  // answered as asked, degraded answers included
  kFailed,     // our fault, or that of what we depend on
  kRejected,   // refused: wrong, not allowed, too much
  kCancelled,  // the client went away
  kExpired,    // its deadline passed
};
inline constexpr std::size_t kOutcomes = 5;

// What a request goes through, in this order; not every request through all of it.
enum class Stage : std::uint8_t {
  kRead,
  kAdmit,
  kQueue,  // these four: deciding
  kTokenize,
  kEncode,
  kDecide,
  kLane,  // waiting for a provider's limits; this and the next four: calling a model, all attempts together
  kConnect,
  kHeaders,     // from the call sent to the head of its answer
  kFirstToken,  // from there to its first content
  kRelay,       // from there to its end
  kWrite,
};
inline constexpr std::size_t kStages = 12;

[[nodiscard]] std::string_view to_string(Outcome outcome) noexcept;  // "completed", "failed", ...
[[nodiscard]] std::string_view to_string(Stage stage) noexcept;      // "read", "admit", ...
[[nodiscard]] std::optional<Outcome> parse_outcome(std::string_view text) noexcept;

// Microseconds. 32 bits hold 71 minutes; what is longer is held at the end of the range.
struct StageTime {
  static constexpr std::uint32_t kNotReached = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t start_us = kNotReached;  // since the start of the request
  std::uint32_t length_us = 0;
  [[nodiscard]] bool reached() const noexcept { return start_us != kNotReached; }
};

// Fixed in size but for what a caller's tracer adds, so that it costs no allocation and the memory of many is
// known. Text that is too long is cut.
struct Record {
  Uuid id;
  TraceId trace_id{};  // zeros: not traced
  SpanId span_id{};
  SpanId parent_id{};
  std::int64_t started_us = 0;    // since 1970-01-01T00:00:00Z
  std::uint64_t duration_us = 0;  // 0 while it is open
  std::array<StageTime, kStages> stages{};
  std::uint32_t tokens = 0;                                // of the input, as the encoder counts them
  std::uint32_t prompt_tokens = 0, completion_tokens = 0;  // as the provider counts them, all attempts
  std::uint64_t cost_nano_usd = 0;                         // 1e-9 US dollars
  std::uint32_t degraded = 0;  // of its decisions, those by a cheaper tier than the policy would have liked
  float score = 0;             // of the decision; a probability
  std::uint16_t status = 0;    // of HTTP; 0: none was sent
  std::uint16_t attempts = 0;  // calls to providers
  Outcome outcome = Outcome::kCompleted;
  Stage error_stage = Stage::kRead;
  bool open = true;
  bool sampled = false;  // the trace is exported
  bool decided = false;  // the decision's fields are set

  // As it came, up to 512 bytes, where the trace is exported; else null. Shared: a record is copied on its
  // way out.
  std::shared_ptr<const std::string> tracestate;

  InlineString<24> endpoint;    // "/v1/route"
  InlineString<24> caller;      // the name of its API key, never the key
  InlineString<40> request_id;  // the caller's x-request-id
  InlineString<40> correlation_id;
  InlineString<32> route;
  InlineString<48> model;
  InlineString<48> target;  // "provider/model" that answered, or was called last
  InlineString<12> tier;
  InlineString<20> reason;
  InlineString<20> error_code;  // empty: no error
  InlineString<112> error_message;
};

}  // namespace waybill::telemetry
