// Decisions that wait for the encoder, until they have been answered. Internal to the decision service.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "embed/batcher.h"
#include "route/decision_service.h"

namespace waybill::route {

class CallPool;
class DecisionJob;
struct Call;

// What the batch function gets to see of each sequence.
struct Part {
  Call* call = nullptr;
  std::uint32_t index = 0;  // which of the prompt's sequences
};

// One prompt on its way. Written by the thread that begins it; then by the computing threads that run its
// parts, each its own, the last of them deciding; then by the one that answers.
struct Call {
  std::string_view prompt;
  Executor* executor = nullptr;
  DecisionTiming timing;

  // What is asked for, exactly one.
  DecisionService::Completion done;
  DecisionService::ExplanationCompletion explained;
  DecisionJob* job = nullptr;  // of which it is a member

  ExplainOptions explain;
  std::uint32_t member = 0;  // which prompt of the job

  std::vector<Part> parts;
  std::vector<embed::TokenId> ids;  // several parts: all of them, for the exact model
  std::vector<std::uint32_t> offsets;
  std::vector<float> windows;                // several parts: [parts, dim]
  std::atomic<std::uint32_t> to_compute{0};  // parts
  std::atomic<std::uint32_t> to_answer{0};   // parts
  std::atomic<bool> failed{false};           // who sets it writes `error`

  std::optional<Decision> decision;
  std::optional<Explanation> explanation;
  Error error;
  std::shared_ptr<CallPool> pool;  // shared: an answer may be with an executor when the service is gone
};

// Calls to reuse, and how those that ended were answered. Thread-safe.
class CallPool : public std::enable_shared_from_this<CallPool> {
 public:
  explicit CallPool(const Clock& clock) : clock_(clock) {}

  // A call that goes back when it has not been passed on.
  class Held {
   public:
    explicit Held(CallPool& pool) : pool_(pool), call_(pool.acquire()) {}
    ~Held() {
      if (call_ != nullptr) pool_.release(call_);
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

    [[nodiscard]] Call& operator*() const noexcept { return *call_; }
    [[nodiscard]] Call* operator->() const noexcept { return call_; }
    // It belongs to the one who answers it.
    std::nullopt_t passed_on() noexcept {
      call_ = nullptr;
      return std::nullopt;
    }

   private:
    CallPool& pool_;
    Call* call_;
  };

  // With all that depends on the prompt reset.
  [[nodiscard]] Call* acquire();
  void release(Call* call) noexcept;

  // The batcher answered a part, with an error or none; the last one sends the call's answer on its way.
  void part_answered(Part& part, Error* error, const embed::BatchTiming& timing) noexcept;
  // The same for a call that was not queued.
  void answer(Call& call, Result<Decision> decision) noexcept;
  void count(ErrorCode code) noexcept;

  struct Counts {
    std::atomic<std::uint64_t> refused{0}, degraded{0}, expired{0}, cancelled{0}, stopped{0}, failed{0},
        threw{0};
  };
  Counts counts;

 private:
  friend class CallAnswer;
  // Sends the answer to the caller's executor: what was decided, or `error`.
  void answer(Call& call) noexcept;
  void deliver(Call& call, bool dropped) noexcept;

  const Clock& clock_;  // outlives the service; not used by deliver()
  std::mutex mutex_;
  std::vector<std::unique_ptr<Call>> calls_;  // guarded by mutex_
  std::vector<Call*> free_;                   // guarded by mutex_; room for all of calls_
};

}  // namespace waybill::route
