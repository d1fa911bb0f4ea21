// One call to one target, from a connection to the end of the answer.
#pragma once

#include <optional>
#include <string>

#include "http/client_pool.h"
#include "http/resolver.h"
#include "http/task.h"
#include "upstream/call.h"
#include "upstream/failure.h"
#include "upstream/rate_limit.h"
#include "upstream/target.h"

namespace waybill::upstream {

struct AttemptResult {
  enum class End : std::uint8_t {
    kAnswered,
    kFailed,     // `failure` says why; nothing of an answer has reached the client
    kCut,        // likewise, but the client has part of a stream, which was ended with an error
    kAbandoned,  // nobody waits for it any more
    kExpired,    // the call's own deadline passed; nothing of an answer has reached the client
  };
  End end = End::kFailed;
  bool expired = false;  // kCut: by the call's own deadline
  Failure failure;
  unsigned status = 200;
  std::string body;        // of an answer that is not a stream
  Usage usage;             // what this attempt has used, whatever its end
  Duration first_token{};  // of a stream: from the call to its first content; zero: there was none
};

// The event that says to a client that its stream has no proper end.
[[nodiscard]] std::string error_event(std::string_view message, std::string_view code);

// Calls `target`. A stream goes to `reply` as it comes, from its first content on; a kept connection that
// turns out to have ended is replaced once. The provider sees its connection close as soon as the call is
// cancelled, or expires. `rates` is told what becomes of it: that it was sent, what the provider says of its
// limits, what was used. Runs on the call's loop; writes the stages of the waybill.
[[nodiscard]] http::Task<AttemptResult> attempt(const Call& call, Target& target, Reply& reply,
                                                const AnswerFacts& facts, http::Resolver& resolver,
                                                RateReservation& rates);

}  // namespace waybill::upstream
