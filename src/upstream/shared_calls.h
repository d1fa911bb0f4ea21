// Calls that are the same become one: those who ask while it is under way follow it, and those who ask later
// have its answer again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/hash.h"
#include "http/cancellation.h"
#include "http/event_loop.h"
#include "http/pending.h"
#include "http/task.h"
#include "upstream/answer_memory.h"
#include "upstream/call.h"

namespace waybill::upstream {

// Which errors are answers too.
enum class ErrorPolicy : std::uint8_t {
  kForget,  // none is kept; a provider's refusal is told to those who wait
  kKeep,    // refusals and failures of providers. Not what we refused, nor what was cancelled or expired
};

enum class AnswerWay : std::uint8_t {
  kLed,     // by a call to a provider
  kShared,  // by a call that another had begun
  kKept,    // from memory
};

// One of those who ask. On the thread of its loop.
struct SharedAsk {
  Hash128 key;        // whoever has the same asks for the same
  Hash128 payload;    // or should: another one under the same key is refused
  Duration lifetime;  // of the answer
  TimePoint deadline = TimePoint::max();
  http::Cancellation& cancellation;  // it waits no more
  http::EventLoop& loop;
};

// What it brings.
class SharedCaller {
 public:
  virtual ~SharedCaller() = default;
  // How its answer comes, before anything of it is written. An error: it is not to have it, and is told so.
  // Called again where a call that it followed has come to nothing.
  [[nodiscard]] virtual Status joined(AnswerWay way) = 0;
  // Makes the call.
  [[nodiscard]] virtual http::Task<Outcome> lead(Reply& reply) = 0;
  // Nobody waits for the call that it makes: neither it nor any that follows. At most once a call.
  virtual void abandon() = 0;
};

// The first with a key leads. Those who come while its call is under way follow: they get a stream from its
// first event on, as it comes, on their own loops. A leader whose client goes away makes the call to its end
// as long as one follows. When a call comes to nothing that could be shared, one of those who followed leads
// in its place; a stream that has begun is everybody's, however it ends.
//
// Memory: what is kept and what is being received, within limit() together; of a stream that does not fit,
// and of one that is larger than a quarter of it, only its latest part is held for those who follow already.
// Thread-safe; a short lock. Must outlive the calls.
class SharedCalls {
 public:
  explicit SharedCalls(ErrorPolicy policy) : policy_(policy) {}

  void limit(std::size_t max_bytes) { memory_.limit(max_bytes); }
  [[nodiscard]] std::size_t bytes() const { return memory_.bytes(); }

  // kKeyReused: another payload has the key. Facts and usage of an answer that is not its own say 0 attempts
  // and nothing used.
  [[nodiscard]] http::Task<Outcome> run(SharedAsk ask, SharedCaller& caller, Reply& reply);

 private:
  struct Flight;
  using FlightPointer = std::shared_ptr<Flight>;  // shared by all who wait for it, each on its own loop
  class Place;
  class LeadReply;
  enum class Step : std::uint8_t { kEvents, kWait, kAnswer, kNothing, kLagging };
  struct Joined;
  using Wake = std::shared_ptr<http::Pending<bool>>;  // shared with what may call back after the wait
  struct HashOf {
    std::size_t operator()(const Hash128& key) const noexcept { return key.low; }
  };

  [[nodiscard]] Joined join(const SharedAsk& ask);
  http::Task<Outcome> lead(const SharedAsk& ask, const FlightPointer& flight, SharedCaller& caller,
                           Reply& reply);
  // Nothing: the call came to nothing.
  http::Task<std::optional<Outcome>> follow(const SharedAsk& ask, const FlightPointer& flight,
                                            SharedCaller& caller, Reply& reply);
  // Of the leader.
  void begin(Flight& flight, const AnswerFacts& facts);
  void append(Flight& flight, std::string_view events);
  [[nodiscard]] bool leave(Flight& flight);  // true: others follow
  void end(Flight& flight, const Outcome* outcome);
  // Of those who follow.
  [[nodiscard]] Step next(Flight& flight, std::size_t& at, std::string& piece, http::EventLoop& loop,
                          const Wake& wake);
  void unfollow(const FlightPointer& flight);
  // With the lock held.
  void unmap(const Flight& flight);

  const ErrorPolicy policy_;
  AnswerMemory memory_;
  std::mutex mutex_;  // guards the next, and what Flight says it does
  std::unordered_map<Hash128, FlightPointer, HashOf> flights_;
};

}  // namespace waybill::upstream
