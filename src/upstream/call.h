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
#include "upstream/chat_request.h"
#include "upstream/terms.h"

namespace waybill::upstream {

// What is to happen before a call can cost anything.
class CallGate {
 public:
  virtual ~CallGate() = default;
  // Awaited once, when the call has its slot, before it is made to a provider for the first time. An error
  // ends the call: nothing is sent.
  virtual http::Task<Status> open() = 0;
};

// One call, whoever makes it. The views and references outlive it. Used on the thread of its loop.
struct Call {
  Operation operation = Operation::kChat;
  const ChatRequest& request;  // in OpenAI's format
  std::string_view model;      // a name that the catalog knows
  Lane lane = Lane::kInteractive;
  TimePoint deadline = TimePoint::max();
  bool finish_abandoned = false;             // goes on when nobody waits any more
  std::size_t max_answer_bytes = 64U << 20;  // of one that does not stream
  std::string_view caller;                   // the name of its key; empty: none
  std::string_view idempotency_key;          // passed on
  std::string_view request_id;               // of the waybill, passed on
  std::string_view traceparent, tracestate;
  CallGate* gate = nullptr;  // null: it may begin
  http::Cancellation& cancellation;
  http::EventLoop& loop;
  telemetry::Waybill& waybill;
};

// As many tokens as the answers may have; a guess where the request does not say.
[[nodiscard]] std::uint32_t expected_answer_tokens(const ChatRequest& request) noexcept;

// What is known of an answer when it begins.
struct AnswerFacts {
  std::string target;     // "provider/model"
  std::string model;      // of the catalog; a fallback's where that answered
  unsigned attempts = 0;  // calls to providers so far
  Duration queued{};      // waiting for limits, all attempts together
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
