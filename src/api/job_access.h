// What the endpoints of jobs have in common: whether there are jobs, whose they are, what a query asks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/call.h"
#include "api/error_answer.h"
#include "base/result.h"
#include "http/task.h"
#include "jobs/service.h"
#include "store/store.h"

namespace waybill::api {

class Gateway;

// kNotFound: this server keeps none.
[[nodiscard]] Result<jobs::Service*> jobs_of(const Gateway& gateway);

// Who sees the jobs of all callers: an admin's key, and everybody where no keys are asked for.
[[nodiscard]] bool sees_all(const Call& call) noexcept;
// kPermissionDenied: it needs a key with admin: true. For those who lease, and so are told what all ask.
[[nodiscard]] Status check_worker(const Call& call);

// The job whose id is in the path; kNotFound where it is not there, or another's.
http::Task<Result<store::Job>> find_job(jobs::Service& service, Call& call);
// How it ended; nothing where it has no answer.
http::Task<Result<std::optional<store::JobResult>>> find_result(jobs::Service& service, Call& call,
                                                                const store::Job& job);

// The job when it has ended, or as it stands at that time, or where the server is stopping. kCancelled: the
// client has hung up.
http::Task<Result<store::Job>> wait_for_end(Gateway& gateway, jobs::Service& service, Call& call, Uuid id,
                                            TimePoint until);

// A refusal with a status and a code of its own. `retry_after`: seconds; 0: not told.
[[nodiscard]] Status refuse(Call& call, unsigned status, std::string_view code, std::string message,
                            unsigned retry_after = 0);

// "wait=30": seconds from 0 to kMostWait; nothing where it is not there.
inline constexpr double kMostWait = 60;
[[nodiscard]] Result<std::optional<Duration>> read_wait(std::string_view query);
// Until when a client is kept waiting that would wait so long: no longer than it says that it does.
[[nodiscard]] TimePoint end_of_wait(const Call& call, Duration wait);

}  // namespace waybill::api
