// Jobs, accepted: when they are on disk.
#pragma once

#include <vector>

#include "base/result.h"
#include "http/event_loop.h"
#include "http/task.h"
#include "jobs/service.h"
#include "store/command.h"

namespace waybill::api {

struct Accepted {
  store::Job job;         // as it was when it was made; of one that was there, its id and state only
  bool replayed = false;  // its key had it already
};

// kOverloaded (the queue is full), kKeyReused, or what the store fails with.
[[nodiscard]] Result<Accepted> accepted(store::Job job, const store::Submit::Reply& reply);
http::Task<Result<Accepted>> submit_job(jobs::Service& service, http::EventLoop& loop, store::Submit submit);
// All on their way at once; each has its own result.
http::Task<std::vector<Result<Accepted>>> submit_jobs(jobs::Service& service, http::EventLoop& loop,
                                                      std::vector<store::Submit> submits);

}  // namespace waybill::api
