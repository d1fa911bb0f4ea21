// One job on its way: a coroutine on one loop, from its claim to what came of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "config/jobs_config.h"
#include "http/deadline.h"
#include "http/pending.h"
#include "jobs/performer.h"
#include "store/writer.h"

namespace waybill::jobs {

// Made anywhere; all else on the thread of its loop.
class RunningJob final : public Performance, public std::enable_shared_from_this<RunningJob> {
 public:
  enum class Why : std::uint8_t {
    kNone,
    kLost,      // it was cancelled, or its lease is another's: nothing of it counts any more
    kShutDown,  // the server ends
    kOverdue,   // its time is over, and it has not ended by itself
  };
  struct Ended {
    bool answered = false;
    Performed performed;
    std::string threw;  // what the performer threw
    Why why = Why::kNone;
    bool begun = false;  // its call
    std::string events;  // those that have not been written
  };

  // `ended` is called on its loop, last and once. The writer is not used once it was cancelled.
  RunningJob(store::Claim::Leased leased, std::shared_ptr<const config::JobQueue> queue,
             http::EventLoop& loop, store::Writer& writer, std::function<void(Ended)> ended);

  void start(Performer& performer);
  void cancel(Why why);
  // The loop may end before it does.
  void abandon();

  [[nodiscard]] const store::Job& job() const noexcept override { return leased_.job; }
  [[nodiscard]] std::string_view body() const noexcept override { return leased_.body; }
  [[nodiscard]] TimePoint deadline() const noexcept override { return deadline_; }
  [[nodiscard]] http::EventLoop& loop() noexcept override { return loop_; }
  [[nodiscard]] http::Cancellation& cancellation() noexcept override { return cancellation_; }
  http::Task<Status> call_begins() override;
  void events(std::string_view events) override;

 private:
  static http::Task<> run(std::shared_ptr<RunningJob> self, Performer& performer);
  [[nodiscard]] store::Lease lease() const noexcept { return {leased_.job.id, leased_.job.fence}; }
  void append();
  void appended(Result<store::Held> held);

  const store::Claim::Leased leased_;
  const std::shared_ptr<const config::JobQueue> queue_;
  http::EventLoop& loop_;
  store::Writer& writer_;
  std::function<void(Ended)> ended_;
  TimePoint deadline_{};
  http::Cancellation cancellation_;
  Why why_ = Why::kNone;
  bool begun_ = false;

  std::string writing_, unwritten_;              // events: first those that are being written
  std::unique_ptr<http::Deadline> next_append_;  // set while events wait for a little more of them
  std::unique_ptr<http::Deadline> overdue_;
  http::Pending<bool>* append_ended_ = nullptr;  // awaited while one is under way
  bool is_appending_ = false, is_pausing_ = false, events_dropped_ = false;
};

}  // namespace waybill::jobs
