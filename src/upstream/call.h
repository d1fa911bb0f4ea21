// A call to a model: what is asked, and what comes of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/cancellation.h"
#include "http/event_loop.h"
#include "http/request.h"
#include "http/task.h"
#include "telemetry/waybill.h"

namespace waybill::upstream {

// The operations of OpenAI's API that go to a provider.
enum class Operation : std::uint8_t { kChat, kCompletions, kEmbeddings };
[[nodiscard]] std::string_view path_of(Operation operation) noexcept;  // "/chat/completions"

// Interactive calls come first; batch calls have what is left, and a share of their own so that none starves.
enum class Lane : std::uint8_t { kInteractive, kBatch };
[[nodiscard]] std::string_view to_string(Lane lane) noexcept;  // "interactive", "batch"

// Tokens as a provider counts them; estimated where it does not tell.
struct Usage {
  std::uint32_t prompt = 0, cached_prompt = 0, completion = 0;  // cached_prompt is part of prompt
};

// One call, whoever makes it. The views and references outlive it. Used on the thread of its loop.
struct Call {
  Operation operation = Operation::kChat;
  std::string_view body;  // a JSON object, checked; in OpenAI's format
  std::string_view model;  // a name that the catalog knows
  bool stream = false;
  bool include_usage = false;         // the client asked for the usage frame of a stream
  std::uint32_t prompt_tokens = 0;    // estimated
  std::uint32_t max_tokens = 0;       // that the answer may have; 0: not said
  std::uint64_t conversation = 0;     // a hash of how it begins; 0: not known
  Lane lane = Lane::kInteractive;
  TimePoint deadline = TimePoint::max();
  bool finish_abandoned = false;     // goes on when nobody waits any more
  std::size_t max_answer_bytes = 64U << 20;  // of one that does not stream
  std::string_view caller;           // the name of its key; empty: none
  std::string_view idempotency_key;  // passed on
  std::string_view request_id;       // of the waybill, passed on
  std::string_view traceparent, tracestate;
  http::Cancellation& cancellation;
  http::EventLoop& loop;
  telemetry::Waybill& waybill;
};

// What is known of an answer when it begins.
struct AnswerFacts {
  std::string target;      // "provider/model"
  std::string model;       // of the catalog; a fallback's where that answered
  unsigned attempts = 0;   // calls to providers so far
  Duration queued{};       // waiting for limits, all attempts together
  std::vector<std::pair<std::string, std::string>> headers;  // of the provider, that a client may want
};

// Where the answer of a streaming call goes, in OpenAI's format: events as they come.
class Reply {
 public:
  virtual ~Reply() = default;
  // Once, before the first write: from now on no other target can be tried.
  virtual void begin(const AnswerFacts& facts) = 0;
  // False: nobody takes it any more.
  virtual http::Task<bool> write(std::string_view events) = 0;
};

struct Outcome {
  std::optional<Error> error;  // what went wrong; where `began`, the stream has ended with it
  bool began = false;          // of a stream: something was written to the reply
  unsigned status = 200;       // of an answer that is not a stream; the provider's refusals too
  std::string body;            // of it
  AnswerFacts facts;
  Usage usage;
  std::uint64_t cost_nano_usd = 0;
};

}  // namespace waybill::upstream
