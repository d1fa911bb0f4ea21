// The answer of a call with an Idempotency-Key, kept in the store of jobs, so that it outlives the program.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/call.h"
#include "base/result.h"
#include "http/task.h"
#include "jobs/service.h"
#include "store/command.h"
#include "upstream/call.h"

namespace waybill::api {

class Gateway;

// An answer with a status of its own; 0: none. The code is a literal.
struct KeyRefusal {
  unsigned status = 0;
  std::string_view code;
};
inline constexpr KeyRefusal kKeyInUse = {409, "idempotency_key_in_use"};
// Of a code that no memory of answers keeps.
[[nodiscard]] Error key_in_use();

// The record of one call: a job that begins as running, which this connection does, and ends with the answer.
// When the program ends in between, the record says that nobody knows what became of it, and whoever comes
// with the key makes the call again. On the call's loop.
class DurableAnswer {
 public:
  // `cancellation` is requested when nobody waits any more. All outlive it.
  DurableAnswer(Gateway& gateway, Call& call, upstream::Operation operation, http::Cancellation& cancellation)
      : gateway_(gateway), call_(call), operation_(operation), cancellation_(cancellation) {}

  // Nothing: the call is to be made, and then end() to be awaited. Else what the key's call, or its job, was
  // answered; waited for where that is not known yet. kKeyReused; kStoreUnavailable, kOverloaded: the key's
  // promise cannot be given now; where refusal() says so, it is to be told in those words.
  http::Task<Result<std::optional<store::JobResult>>> begin(const store::IdempotencyKey& key);
  // Keeps an answer of the provider, be it good or not; what was refused here, cancelled or too late is
  // forgotten, and so is a stream of which there is not all.
  http::Task<> end(const upstream::Outcome& outcome, std::string_view events, bool all);
  // Why begin() failed: another with the key is under way (jobs.wait_for_same_key: false), or the key's job
  // has ended without an answer.
  [[nodiscard]] const KeyRefusal& refusal() const noexcept { return refusal_; }

 private:
  http::Task<Result<store::Job>> wait_for(const store::Job& job);
  http::Task<> forget(Uuid id);

  Gateway& gateway_;
  Call& call_;
  const upstream::Operation operation_;
  http::Cancellation& cancellation_;
  store::Lease lease_;
  KeyRefusal refusal_;
};

// The answer once more, to who asks again.
http::Task<upstream::Outcome> replay(const store::JobResult& result, upstream::Reply& reply);

// Passes a stream on, and keeps it up to a bound.
class RecordingReply final : public upstream::Reply {
 public:
  RecordingReply(upstream::Reply& to, std::size_t most) : to_(to), most_(most) {}
  void begin(const upstream::AnswerFacts& facts) override { to_.begin(facts); }
  http::Task<bool> write(std::string_view events) override;

  [[nodiscard]] std::string_view events() const noexcept { return events_; }
  [[nodiscard]] bool all() const noexcept { return all_; }

 private:
  upstream::Reply& to_;
  const std::size_t most_;
  std::string events_;
  bool all_ = true;
};

}  // namespace waybill::api
