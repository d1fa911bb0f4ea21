// Who does the work of a job that is run in this process.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "http/cancellation.h"
#include "http/event_loop.h"
#include "http/task.h"
#include "store/job.h"

namespace waybill::jobs {

// What came of it: what a client would have been answered over HTTP.
struct Performed {
  unsigned status = 0;
  std::string content_type;
  std::string body;
  std::string facts;       // a JSON object: waybill, target, model, attempts, usage, cost; or empty
  bool called = false;     // a provider was called, so that it may have been billed
  Duration retry_after{};  // as the answer says; zero: it does not
};

// One job on its way. The references outlive the performance; used on the thread of the loop.
class Performance {
 public:
  virtual ~Performance() = default;
  [[nodiscard]] virtual const store::Job& job() const noexcept = 0;
  [[nodiscard]] virtual std::string_view body() const noexcept = 0;
  [[nodiscard]] virtual TimePoint deadline() const noexcept = 0;
  [[nodiscard]] virtual http::EventLoop& loop() noexcept = 0;
  // Requested when nobody wants it any more: it was cancelled, its lease was lost, the server ends.
  [[nodiscard]] virtual http::Cancellation& cancellation() noexcept = 0;

  // To be awaited before a provider is called for the first time, and heeded: it writes down that the call
  // begins. An error: the lease is no longer ours, or cannot be written; nothing may be called.
  virtual http::Task<Status> call_begins() = 0;
  // Events of a job that streams, in OpenAI's format, as they come.
  virtual void events(std::string_view events) = 0;
};

class Performer {
 public:
  virtual ~Performer() = default;
  virtual http::Task<Performed> perform(Performance& performance) = 0;
};

}  // namespace waybill::jobs
