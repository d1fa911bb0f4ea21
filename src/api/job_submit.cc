#include "api/job_submit.h"

#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "api/job_json.h"
#include "http/pending.h"

namespace waybill::api {
namespace {

using Reply = Result<store::Submit::Reply>;

}  // namespace

Result<Accepted> accepted(store::Job job, const store::Submit::Reply& reply) {
  using How = store::Submit::How;
  switch (reply.how) {
    case How::kNew:
      job.id = reply.id;
      job.state = reply.state;
      job.created = created_of(reply.id);
      return Accepted{.job = std::move(job), .replayed = false};
    case How::kExisting:
      job.id = reply.id;
      job.state = reply.state;
      return Accepted{.job = std::move(job), .replayed = true};
    case How::kKeyReused:
      return fail(ErrorCode::kKeyReused,
                  "This Idempotency-Key came with another request before; use a new one.", "Idempotency-Key");
    case How::kQueueFull:
      break;
  }
  Error error = {.code = ErrorCode::kOverloaded,
                 .message = fmt::format("The queue \"{}\" is full (max_depth); try again later.", job.queue),
                 .field = "queue",
                 .retry_after = std::chrono::seconds(5)};
  return std::unexpected(std::move(error));
}

http::Task<Result<Accepted>> submit_job(jobs::Service& service, http::EventLoop& loop, store::Submit submit) {
  store::Job job = job_of(submit);
  Reply reply = co_await service.commit(std::move(submit), loop);
  if (!reply) co_return std::unexpected(std::move(reply.error()));
  co_return accepted(std::move(job), *reply);
}

http::Task<std::vector<Result<Accepted>>> submit_jobs(jobs::Service& service, http::EventLoop& loop,
                                                      std::vector<store::Submit> submits) {
  std::vector<store::Job> made;
  made.reserve(submits.size());
  for (const store::Submit& each : submits) made.push_back(job_of(each));
  std::vector<std::optional<Reply>> replies(submits.size());
  std::size_t left = submits.size();
  http::Pending<bool> all;
  for (std::size_t i = 0; i < submits.size(); ++i) {
    service.writer().commit(std::move(submits[i]), loop, [&service, &replies, &left, &all, i](Reply reply) {
      if (!reply) service.failed(reply.error());
      replies[i] = std::move(reply);
      if (--left == 0) all.set(true);
    });
  }
  if (!submits.empty()) (void)co_await all.get();
  std::vector<Result<Accepted>> results;
  results.reserve(replies.size());
  for (std::size_t i = 0; i < replies.size(); ++i) {
    Reply& reply = *replies[i];
    if (reply) {
      results.push_back(accepted(std::move(made[i]), *reply));
    } else {
      results.emplace_back(std::unexpected(std::move(reply.error())));
    }
  }
  co_return results;
}

}  // namespace waybill::api
