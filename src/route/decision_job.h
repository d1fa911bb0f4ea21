// Many prompts of one caller, fed to the encoder a little at a time. Internal to the decision service.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "route/decision_call.h"
#include "route/decision_service.h"

namespace waybill::route {

// What a job needs of the service that runs it.
class JobHost {
 public:
  virtual ~JobHost() = default;
  // Begins a prompt of a job on this thread: its answer, or empty when the job's member_answered() will get
  // it.
  [[nodiscard]] virtual std::optional<Result<DecisionAnswer>> begin_member(DecisionJob& job,
                                                                           std::uint32_t member,
                                                                           const DecisionCall& call,
                                                                           std::size_t& tokens) = 0;
  [[nodiscard]] virtual bool resume(WorkerPool::Work&& work) = 0;  // on a text thread
  virtual void job_ended() noexcept = 0;                           // the job will not touch the host again
};

// Owns itself from start() until it has posted its answer. One thread at a time, a text thread, reads prompts
// (pump()); computing threads bring answers (member_answered()) and have the pump go on when half of what may
// be in flight is done.
class DecisionJob {
 public:
  DecisionJob(JobHost& host, std::shared_ptr<CallPool> pool, std::span<const std::string_view> prompts,
              const CallOptions& call, DecisionService::BatchCompletion&& done,
              std::size_t max_tokens_in_flight);

  // On a text thread.
  void pump();
  // A prompt that was queued has been answered; gives the call back.
  void member_answered(Call& call) noexcept;

  // Takes `done` back, for a job that is not started.
  [[nodiscard]] DecisionService::BatchCompletion take_done() noexcept { return std::move(done_); }

 private:
  friend class JobAnswer;
  void finish() noexcept;  // deletes this
  void deliver(bool dropped) noexcept;

  JobHost& host_;
  const std::shared_ptr<CallPool>
      pool_;  // shared: the answer may be with an executor when the service is gone
  const std::span<const std::string_view> prompts_;
  const CallOptions call_;
  const std::size_t max_tokens_in_flight_;
  DecisionService::BatchCompletion done_;
  std::vector<DecisionAnswer> answers_;  // each written by the one thread that has it

  std::mutex mutex_;  // guards the rest
  std::size_t next_ = 0;
  std::size_t items_in_flight_ = 0, tokens_in_flight_ = 0;
  bool pumping_ = true;
  std::optional<Error> error_;
};

}  // namespace waybill::route
