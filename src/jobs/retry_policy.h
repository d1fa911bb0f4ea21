// What is to become of a job after an attempt. Time and chance are given.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "config/jobs_config.h"
#include "jobs/performer.h"
#include "store/command.h"

namespace waybill::jobs {

// What an answer says of the job that it answers.
enum class Answered : std::uint8_t {
  kCompleted,  // 2xx
  kFailed,     // asking again would not help
  kAgain,      // asking again may help: 408, 425, 429, 5xx, or no answer at all
  kNotCalled,  // the same, and no provider was called: the attempt does not count
};
[[nodiscard]] Answered classify(const Performed& performed) noexcept;

// How long to wait after `failures` attempts in a row (1: the first): anything up to `first` doubled with
// each of them ("full jitter"), so that what failed together does not come back together. `random`: [0, 1).
[[nodiscard]] Duration backoff_of(const config::JobBackoff& backoff, std::uint32_t failures,
                                  double random) noexcept;

// As the dead letter will tell it: code and sentence of OpenAI's error body, where that is what came.
[[nodiscard]] store::AttemptError error_of(const Performed& performed, store::Time now);

struct Verdict {
  enum class What : std::uint8_t {
    kFinish,   // with the answer as its result
    kFail,     // the attempt came to nothing
    kRelease,  // there was no attempt
    kLeave,    // the lease stays, so that whoever comes next finds the job in doubt
  };
  What what = What::kFinish;
  store::State state = store::State::kCompleted;  // kFinish
  store::AttemptError error;                      // kFail
  store::Time at = store::kNever;                 // kFail, kRelease: when it may be claimed again
};

// After an answer. `releases`: in a row, of its queue.
[[nodiscard]] Verdict judge(const Performed& performed, const config::JobQueue& queue, std::uint32_t receives,
                            std::uint32_t releases, store::Time now, double random);

// When the server ends while the job runs. `begun`: its call has begun.
[[nodiscard]] Verdict judge_interrupted(const config::JobQueue& queue, bool begun, store::Time now);

// When it did not end in its time, nor by itself after that.
[[nodiscard]] Verdict judge_overdue(const config::JobQueue& queue, std::uint32_t receives, bool begun,
                                    store::Time now, double random);

}  // namespace waybill::jobs
