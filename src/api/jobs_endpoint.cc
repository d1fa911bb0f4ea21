// /v1/jobs: submitted, looked at, waited for, taken back, tried again, removed.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/endpoint.h"
#include "api/gateway.h"
#include "api/job_access.h"
#include "api/job_filter.h"
#include "api/job_json.h"
#include "api/job_request.h"
#include "api/job_result.h"
#include "api/job_submit.h"
#include "api/text_work.h"
#include "base/json_writer.h"

namespace waybill::api {
namespace {

constexpr unsigned kLookAgain = 1;    // seconds: for Retry-After
constexpr std::size_t kFewJobs = 64;  // the loops write so many themselves

TimePoint now() noexcept { return std::chrono::steady_clock::now(); }

// What a replayed job looks like by now.
http::Task<Status> look_again(jobs::Service& service, Call& call, store::Job& job) {
  auto look = [id = job.id](store::Store& from) { return from.find(id); };
  Result<std::optional<store::Job>> found = co_await service.read(call.exchange.loop(), look);
  if (!found) co_return std::unexpected(std::move(found.error()));
  if (*found) job = std::move(**found);
  co_return Status{};
}

void write_refusal(JsonWriter& json, const Error& error) {
  const Problem problem = problem_of(error.code);
  json.begin_object().key("object").string("error").key("error").begin_object();
  json.key("message").string(error.message).key("type").string(problem.type);
  json.key("param").string(error.field).key("code").string(problem.code).end_object().end_object();
}

// What is long is written on a text thread.
template <class Write>
http::Task<Status> write_list(Call& call, std::size_t jobs, Write& write) {
  Status written;
  if (jobs <= kFewJobs) {
    written = write();
  } else {
    written = co_await on_text_thread_or_here(call, write);
  }
  co_return written;
}

http::Task<Status> submit_one(jobs::Service& service, Call& call, store::Submit submit) {
  Result<Accepted> made = co_await submit_job(service, call.exchange.loop(), std::move(submit));
  if (!made) co_return std::unexpected(std::move(made.error()));
  if (made->replayed) {
    Status looked = co_await look_again(service, call, made->job);
    if (!looked) co_return looked;
  }
  write_accepted(*made, call.response());
  co_return Status{};
}

http::Task<Status> submit_many(jobs::Service& service, Call& call, std::vector<store::Submit> submits) {
  std::vector<Result<Accepted>> made =
      co_await submit_jobs(service, call.exchange.loop(), std::move(submits));
  const auto refused = [](const Result<Accepted>& each) { return !each.has_value(); };
  if (std::ranges::all_of(made, refused)) co_return std::unexpected(std::move(made.front().error()));
  bool replayed = false;
  for (Result<Accepted>& each : made) {
    if (!each || !each->replayed) continue;
    replayed = true;
    Status looked = co_await look_again(service, call, each->job);
    if (!looked) co_return looked;
  }
  auto write = [&made, &call]() -> Status {
    JsonWriter json(call.response().body);
    json.begin_object().key("object").string("list").key("data").begin_array();
    for (const Result<Accepted>& each : made) {
      if (each) {
        write_job(json, each->job);
      } else {
        write_refusal(json, each.error());
      }
    }
    json.end_array().end_object();
    return {};
  };
  Status written = co_await write_list(call, made.size(), write);
  if (!written) co_return written;
  call.response().status = 202;
  if (replayed) call.response().add_header("Idempotent-Replayed", "true");
  co_return Status{};
}

}  // namespace

void write_accepted(const Accepted& accepted, http::Response& response) {
  JsonWriter json(response.body);
  write_job(json, accepted.job);
  response.status = 202;
  response.add_header("Location", "/v1/jobs/" + to_string(accepted.job.id));
  response.add_header("Retry-After", std::uint64_t{kLookAgain});
  if (accepted.replayed) response.add_header("Idempotent-Replayed", "true");
}

http::Task<Status> submit_jobs(Gateway& gateway, Call& call) {
  Result<jobs::Service*> service = jobs_of(gateway);
  if (!service) co_return std::unexpected(std::move(service.error()));
  const JobSource source = job_source(call, **service);
  Result<JobRequest> wanted;
  auto read = [&]() -> Status {
    wanted = read_job_request(call.request().body, source);
    if (!wanted) return std::unexpected(std::move(wanted.error()));
    return {};
  };
  Status status = co_await read_body(call, read);
  if (!status) co_return status;
  call.waybill.stage(telemetry::Stage::kAdmit, call.request().received, now());
  if (wanted->many) {
    status = co_await submit_many(**service, call, std::move(wanted->jobs));
  } else {
    status = co_await submit_one(**service, call, std::move(wanted->jobs.front()));
  }
  co_return status;
}

http::Task<Status> list_jobs(Gateway& gateway, Call& call) {
  Result<jobs::Service*> service = jobs_of(gateway);
  if (!service) co_return std::unexpected(std::move(service.error()));
  Result<store::JobFilter> filter = read_job_filter(call);
  if (!filter) co_return std::unexpected(std::move(filter.error()));
  Status status = co_await list_jobs_of(**service, call, std::move(*filter));
  co_return status;
}

http::Task<Status> list_jobs_of(jobs::Service& service, Call& call, store::JobFilter filter) {
  auto look = [&filter](store::Store& from) { return from.list(filter); };
  Result<std::vector<store::Job>> found = co_await service.read(call.exchange.loop(), look);
  if (!found) co_return std::unexpected(std::move(found.error()));
  const bool more = found->size() == filter.limit;
  if (more) found->pop_back();
  auto write = [&found, &call, more]() -> Status {
    JsonWriter json(call.response().body);
    json.begin_object().key("object").string("list").key("data").begin_array();
    for (const store::Job& each : *found) write_job(json, each);
    json.end_array().key("has_more").boolean(more).key("next");
    if (more) {
      json.string(to_string(found->back().id));
    } else {
      json.null();
    }
    json.end_object();
    return {};
  };
  Status written = co_await write_list(call, found->size(), write);
  co_return written;
}

http::Task<Status> find_job(Gateway& gateway, Call& call) {
  Result<jobs::Service*> service = jobs_of(gateway);
  if (!service) co_return std::unexpected(std::move(service.error()));
  const Result<std::optional<Duration>> wait = read_wait(call.request().query);
  if (!wait) co_return std::unexpected(wait.error());
  Result<store::Job> job = co_await find_job(**service, call);
  if (job && *wait && !is_terminal(job->state)) {
    const Uuid id = job->id;
    const TimePoint until = end_of_wait(call, **wait);
    job = co_await wait_for_end(gateway, **service, call, id, until);
  }
  if (!job) co_return std::unexpected(std::move(job.error()));
  Result<std::optional<store::JobResult>> result = co_await find_result(**service, call, *job);
  if (!result) co_return std::unexpected(std::move(result.error()));
  JsonWriter json(call.response().body);
  write_job(json, *job, *result ? &**result : nullptr);
  if (!is_terminal(job->state)) call.response().add_header("Retry-After", std::uint64_t{kLookAgain});
  co_return Status{};
}

http::Task<Status> job_result(Gateway& gateway, Call& call) {
  Result<jobs::Service*> service = jobs_of(gateway);
  if (!service) co_return std::unexpected(std::move(service.error()));
  Result<store::Job> job = co_await find_job(**service, call);
  if (!job) co_return std::unexpected(std::move(job.error()));
  Status answered = co_await answer_with_result(**service, call, *job);
  co_return answered;
}

namespace {

// The record of a call that is under way is its connection's: without it the call could be made twice.
Status check_not_in_call(Call& call, const store::Job& job, std::string_view code) {
  if (job.queue != jobs::kCallQueue || is_terminal(job.state)) return {};
  return refuse(call, 409, code,
                "This is the record of a call that is under way; it ends with its own connection.");
}

}  // namespace

http::Task<Status> cancel_job(Gateway& gateway, Call& call) {
  Result<jobs::Service*> service = jobs_of(gateway);
  if (!service) co_return std::unexpected(std::move(service.error()));
  Result<store::Job> job = co_await find_job(**service, call);
  if (!job) co_return std::unexpected(std::move(job.error()));
  if (Status job_it_is = check_not_in_call(call, *job, "job_not_cancellable"); !job_it_is)
    co_return job_it_is;
  const store::Cancel command = {.id = job->id};
  Result<store::Cancel::Reply> done = co_await (*service)->commit(command, call.exchange.loop());
  if (!done) co_return std::unexpected(std::move(done.error()));
  job = co_await find_job(**service, call);
  if (!job) co_return std::unexpected(std::move(job.error()));
  JsonWriter json(call.response().body);
  write_job(json, *job);
  co_return Status{};
}

http::Task<Status> retry_job(Gateway& gateway, Call& call) {
  Result<jobs::Service*> service = jobs_of(gateway);
  if (!service) co_return std::unexpected(std::move(service.error()));
  Result<store::Job> job = co_await find_job(**service, call);
  if (!job) co_return std::unexpected(std::move(job.error()));
  if (job->queue == jobs::kCallQueue) {
    co_return refuse(call, 409, "job_not_retryable",
                     "This is the record of a call that its own connection made; send the call again.");
  }
  if ((*service)->queue(job->queue) == nullptr) {
    co_return refuse(
        call, 409, "queue_not_configured",
        fmt::format("The job's queue \"{}\" is not configured: nobody would run it.", job->queue));
  }
  const store::Retry command = {.id = job->id};
  Result<store::Retry::Reply> done = co_await (*service)->commit(command, call.exchange.loop());
  if (!done) co_return std::unexpected(std::move(done.error()));
  if (!done->found || done->before == done->after) {
    co_return refuse(call, 409, "job_not_retryable",
                     fmt::format("The job is {}: only jobs that ended without the answer that was asked for, "
                                 "or are held, can be tried again.",
                                 to_string(done->after)));
  }
  job = co_await find_job(**service, call);
  if (!job) co_return std::unexpected(std::move(job.error()));
  write_accepted(Accepted{.job = std::move(*job), .replayed = false}, call.response());
  co_return Status{};
}

http::Task<Status> delete_job(Gateway& gateway, Call& call) {
  Result<jobs::Service*> service = jobs_of(gateway);
  if (!service) co_return std::unexpected(std::move(service.error()));
  Result<store::Job> job = co_await find_job(**service, call);
  if (!job) co_return std::unexpected(std::move(job.error()));
  if (Status job_it_is = check_not_in_call(call, *job, "job_not_ended"); !job_it_is) co_return job_it_is;
  const store::Remove command = {.id = job->id};
  Result<store::Remove::Reply> done = co_await (*service)->commit(command, call.exchange.loop());
  if (!done) co_return std::unexpected(std::move(done.error()));
  if (done->found && !is_terminal(done->before)) {
    co_return refuse(call, 409, "job_not_ended",
                     fmt::format("The job is {}; cancel it first.", to_string(done->before)));
  }
  JsonWriter json(call.response().body);
  json.begin_object().key("id").string(to_string(job->id)).key("object").string("job");
  json.key("deleted").boolean(true).end_object();
  co_return Status{};
}

}  // namespace waybill::api
