// What the store keeps of a job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/uuid.h"

namespace waybill::store {

// Microseconds since 1970-01-01T00:00:00Z: times of the wall clock, because they outlive the process. Whoever
// asks for something that depends on the time gives it, so that a test can own it.
using Time = std::int64_t;
inline constexpr Time kNever = 0;

// A job is in exactly one of them. The first four can still become something else by themselves.
enum class State : std::uint8_t {
  kQueued,     // may be claimed
  kScheduled,  // may be claimed once its time has come: run_after, or the backoff after an attempt
  kRunning,    // leased
  kHeld,       // in doubt, and a person is to decide: it was being called when its worker was lost
  kCompleted,  // has the answer that was asked for
  kFailed,     // has an answer that will not become another by asking again
  kCancelled,  // taken back
  kExpired,    // its time passed before it was done
  kDead,       // a dead letter: it used up its receives
};
inline constexpr std::size_t kStates = 9;

[[nodiscard]] std::string_view to_string(State state) noexcept;  // "queued", "scheduled", ...
[[nodiscard]] std::optional<State> parse_state(std::string_view text) noexcept;
[[nodiscard]] constexpr bool is_terminal(State state) noexcept { return state >= State::kCompleted; }

// Job::endpoint of what workers elsewhere are to do.
inline constexpr std::string_view kExternalEndpoint = "external";

// One receive that did not end in an answer.
struct AttemptError {
  std::uint32_t receive = 0;  // 1 for the first
  Time started = kNever, ended = kNever;
  std::string code;       // "upstream_timeout", "lease_expired", ...
  std::string message;    // a sentence
  unsigned status = 0;    // of HTTP, where there was one
  bool in_doubt = false;  // the call had begun, and nobody knows what became of it
};

struct Job {
  Uuid id;
  std::string queue, caller;  // the caller is the name of its key; empty: none
  State state = State::kQueued;
  int priority = 0;                           // larger goes first
  Time created = kNever, run_after = kNever;  // run_after: kNever where it was not asked for
  Time expires = kNever;                      // not done by then: expired
  Time claimed = kNever, finished = kNever;   // claimed: the last time
  std::uint32_t receives = 0, max_receives = 3;
  std::uint32_t in_doubt = 0;        // receives that ended in doubt
  std::uint64_t fence = 0;           // of the latest lease; rises with each
  bool started = false;              // the call of the current receive has begun
  std::string endpoint;              // "/v1/chat/completions"; "external"
  std::string attributes;            // a JSON object that the store does not look into; or empty
  std::string metadata;              // a JSON object of strings; or empty
  std::uint64_t result = 0;          // its number in the order of endings; 0: not ended
  std::vector<AttemptError> errors;  // filled by Store::find() only
};

// How a job ended.
struct JobResult {
  unsigned status = 0;  // of HTTP
  std::string content_type;
  std::string body;
  std::string facts;  // a JSON object: target, model, usage, cost; or empty
};

// Who asks twice under one key gets one job.
struct IdempotencyKey {
  Hash128 key;      // a cryptographic hash of caller and key: nobody can make two of them meet
  Hash128 payload;  // likewise of what is asked
  Time until = kNever;
};

}  // namespace waybill::store
