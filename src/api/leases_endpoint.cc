// Workers elsewhere: POST /v1/queues/{queue}/lease takes jobs, /v1/leases/{token}/... says what became of
// them.
#include <optional>
#include <random>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "api/endpoint.h"
#include "api/gateway.h"
#include "api/job_access.h"
#include "api/job_json.h"
#include "api/job_reader.h"
#include "api/job_wait.h"
#include "api/json_body.h"
#include "api/lease_tokens.h"
#include "base/json_writer.h"
#include "base/utf8.h"
#include "jobs/retry_policy.h"
#include "upstream/json_scanner.h"

namespace waybill::api {
namespace {

using store::Held;

constexpr double kShortestLease = 1, kLongestLease = 12 * 3600, kLongestDelay = 7 * 86'400;  // seconds
constexpr std::int64_t kMostLeased = 100;
constexpr std::size_t kMostCode = 64, kMostMessage = 2000;

store::Time microseconds(double seconds) noexcept { return static_cast<store::Time>(seconds * 1e6); }
store::Time microseconds(Duration time) noexcept {
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

// Everything in these bodies may be left out, and so may the body.
Status parse_body(const Call& call, JsonBody& body, std::initializer_list<std::string_view> fields) {
  const std::string& text = call.request().body;
  if (Status parsed = body.parse(text.empty() ? std::string_view("{}") : std::string_view(text)); !parsed)
    return parsed;
  return body.check_fields(fields);
}

Status lost(Call& call) {
  return refuse(
      call, 409, "lease_lost",
      "This lease is no longer yours: it ran out, the job was cancelled, or it has ended. Drop what "
      "you have made of it.");
}

// The lease that the path names, of a worker who may have it.
struct Holder {
  jobs::Service* service = nullptr;
  store::Lease lease;
};
Result<Holder> holder_of(const Gateway& gateway, Call& call) {
  Result<jobs::Service*> service = jobs_of(gateway);
  if (!service) return std::unexpected(std::move(service.error()));
  if (Status worker = check_worker(call); !worker) return std::unexpected(std::move(worker.error()));
  const std::string token = path_argument(call);
  const std::optional<LeaseTokens::Read> read = gateway.lease_tokens().read(token);
  if (!read) {
    return fail(ErrorCode::kNotFound, fmt::format("\"{}\" is no lease's token.", token.substr(0, 100)),
                "token");
  }
  if (!read->genuine) return std::unexpected(lost(call).error());
  return Holder{.service = *service, .lease = read->lease};
}

// The job after a change, for the answer.
http::Task<Status> answer_job(jobs::Service& service, Call& call, Uuid id) {
  auto look = [id](store::Store& from) { return from.find(id); };
  Result<std::optional<store::Job>> job = co_await service.read(call.exchange.loop(), look);
  if (!job) co_return std::unexpected(std::move(job.error()));
  if (!*job) co_return fail(ErrorCode::kNotFound, "The job was removed.", "token");
  JsonWriter json(call.response().body);
  write_job(json, **job);
  co_return Status{};
}

http::Task<Status> answer_held(jobs::Service& service, Call& call, Uuid id, Result<Held> held) {
  if (!held) co_return std::unexpected(std::move(held.error()));
  if (*held != Held::kDone) co_return lost(call);
  Status answered = co_await answer_job(service, call, id);
  co_return answered;
}

struct LeaseRequest {
  std::size_t max = 1;
  Duration wait{};
  double visibility = 0;  // seconds
};

Result<LeaseRequest> read_lease_request(const Call& call, const config::JobQueue& queue) {
  JsonBody body;
  if (Status parsed = parse_body(call, body, {"max", "wait", "visibility"}); !parsed)
    return std::unexpected(std::move(parsed.error()));
  const auto max = body.integer("max", 1, kMostLeased);
  if (!max) return std::unexpected(max.error());
  const auto wait = body.number("wait", 0, kMostWait);
  if (!wait) return std::unexpected(wait.error());
  const auto visibility = body.number("visibility", kShortestLease, kLongestLease);
  if (!visibility) return std::unexpected(visibility.error());
  return LeaseRequest{.max = static_cast<std::size_t>(max->value_or(1)),
                      .wait = Duration(static_cast<Duration::rep>(wait->value_or(0) * 1e9)),
                      .visibility = visibility->value_or(seconds(queue.visibility))};
}

void write_leases(const LeaseTokens& tokens, const store::Claim::Reply& leased, store::Time until,
                  std::string& out) {
  JsonWriter json(out);
  json.begin_object().key("object").string("list").key("data").begin_array();
  for (const store::Claim::Leased& each : leased) {
    const std::string token = tokens.make({.id = each.job.id, .fence = each.job.fence});
    json.begin_object().key("token").string(token).key("deadline");
    write_time(json, until);
    json.key("job");
    write_job(json, each.job);
    json.key("request").raw(each.body).end_object();
  }
  json.end_array().end_object();
}

http::Task<Status> lease_from(Gateway& gateway, jobs::Service& service, Call& call,
                              const config::JobQueue& queue, LeaseRequest wanted) {
  http::EventLoop& loop = call.exchange.loop();
  const TimePoint until_then = end_of_wait(call, wanted.wait);
  JobWait wait(gateway, call.exchange);
  const jobs::Hub::Subscription news =
      service.hub().watch_all(queue.name, {}, loop, [wake = wait.waker()](const store::Change& change) {
        if (change.state == store::State::kQueued && !change.events) wake();
      });
  for (;;) {
    const store::Time until = jobs::store_now() + microseconds(wanted.visibility);
    store::Claim command = {.queue = queue.name, .max = wanted.max, .until = until, .own = false};
    Result<store::Claim::Reply> leased = co_await service.commit(std::move(command), loop);
    if (!leased) co_return std::unexpected(std::move(leased.error()));
    JobWait::End end = JobWait::End::kTime;
    if (leased->empty()) end = co_await wait.wait(until_then);
    if (end == JobWait::End::kNews) continue;
    if (end == JobWait::End::kGone) co_return fail(ErrorCode::kCancelled, "The client went away.");
    write_leases(gateway.lease_tokens(), *leased, until, call.response().body);
    co_return Status{};
  }
}

}  // namespace

http::Task<Status> lease_jobs(Gateway& gateway, Call& call) {
  Result<jobs::Service*> service = jobs_of(gateway);
  if (!service) co_return std::unexpected(std::move(service.error()));
  if (Status worker = check_worker(call); !worker) co_return worker;
  auto queue = find_queue(path_argument(call), **service);
  if (!queue) co_return std::unexpected(std::move(queue.error()));
  if ((*queue)->workers != config::QueueWorkers::kExternal) {
    co_return refuse(call, 409, "queue_not_external",
                     fmt::format("The queue \"{}\" is worked on by this server; only queues with workers: "
                                 "external are leased from.",
                                 (*queue)->name));
  }
  const Result<LeaseRequest> wanted = read_lease_request(call, **queue);
  if (!wanted) co_return std::unexpected(wanted.error());
  Status leased = co_await lease_from(gateway, **service, call, **queue, *wanted);
  co_return leased;
}

http::Task<Status> renew_lease(Gateway& gateway, Call& call) {
  const Result<Holder> holder = holder_of(gateway, call);
  if (!holder) co_return std::unexpected(holder.error());
  JsonBody body;
  if (Status parsed = parse_body(call, body, {"visibility"}); !parsed) co_return parsed;
  const auto visibility = body.number("visibility", kShortestLease, kLongestLease);
  if (!visibility) co_return std::unexpected(visibility.error());
  constexpr double kUsual = 60;
  const store::Time until = jobs::store_now() + microseconds(visibility->value_or(kUsual));
  store::Renew command;
  command.leases.push_back(holder->lease);
  command.until = until;
  Result<std::vector<Held>> held = co_await holder->service->commit(std::move(command), call.exchange.loop());
  if (!held) co_return std::unexpected(std::move(held.error()));
  if (held->front() != Held::kDone) co_return lost(call);
  JsonWriter json(call.response().body);
  json.begin_object().key("token").string(path_argument(call)).key("deadline");
  write_time(json, until);
  json.end_object();
  co_return Status{};
}

http::Task<Status> complete_lease(Gateway& gateway, Call& call) {
  const Result<Holder> holder = holder_of(gateway, call);
  if (!holder) co_return std::unexpected(holder.error());
  JsonBody body;
  if (Status parsed = parse_body(call, body, {"result", "status_code"}); !parsed) co_return parsed;
  const auto status = body.integer("status_code", 200, 599);
  if (!status) co_return std::unexpected(status.error());
  store::Finish command = {.lease = holder->lease, .state = store::State::kCompleted, .result = {}};
  command.result.status = static_cast<unsigned>(status->value_or(200));
  if (command.result.status >= 400) command.state = store::State::kFailed;
  command.result.content_type = "application/json";
  command.result.body = "null";
  // As it was written: numbers keep their digits.
  const std::string& text = call.request().body;
  upstream::JsonScanner json(text.empty() ? std::string_view("{}") : std::string_view(text));
  if (json.enter_object()) {
    for (upstream::JsonString key; json.next_member(key);) {
      const std::string_view value = json.skip();
      if (key.is("result")) command.result.body = value;
    }
  }
  // What could be read above may have been repaired for it; what is kept is what was sent.
  if (!json.at_end() || !is_valid_utf8(command.result.body))
    co_return fail(ErrorCode::kInvalidInput, "\"result\" must be JSON in UTF-8.", "result");
  Result<Held> held = co_await holder->service->commit(std::move(command), call.exchange.loop());
  Status answered = co_await answer_held(*holder->service, call, holder->lease.id, std::move(held));
  co_return answered;
}

namespace {

struct FailRequest {
  std::string code = "worker_failed", message = "The worker said that it had failed.";
  std::optional<double> retry_after;  // seconds
  bool permanent = false;
};

Result<FailRequest> read_fail_request(const Call& call) {
  JsonBody body;
  FailRequest wanted;
  if (Status parsed = parse_body(call, body, {"error", "retry_after", "permanent"}); !parsed)
    return std::unexpected(std::move(parsed.error()));
  if (const boost::json::value* error = body.find("error")) {
    const boost::json::object* object = error->if_object();
    if (object == nullptr) return wrong_type("error", "an object with a code and a message", *error);
    for (const auto& [name, value] : *object) {
      const bool is_code = name == "code";
      if (!is_code && name != "message") {
        return fail(ErrorCode::kInvalidInput, "\"error\" has two fields: code and message.", "error");
      }
      const boost::json::string* text = value.if_string();
      if (text == nullptr) return wrong_type(is_code ? "error.code" : "error.message", "a string", value);
      (is_code ? wanted.code : wanted.message) =
          std::string_view(*text).substr(0, is_code ? kMostCode : kMostMessage);
    }
  }
  const auto retry_after = body.number("retry_after", 0, kLongestDelay);
  if (!retry_after) return std::unexpected(retry_after.error());
  wanted.retry_after = *retry_after;
  const auto permanent = body.flag("permanent");
  if (!permanent) return std::unexpected(permanent.error());
  wanted.permanent = permanent->value_or(false);
  return wanted;
}

// It will not do better another time: that is its answer.
http::Task<Result<Held>> fail_for_good(const Holder& holder, Call& call, const FailRequest& wanted) {
  store::Finish command = {.lease = holder.lease, .state = store::State::kFailed, .result = {}};
  command.result.status = 422;
  command.result.content_type = "application/json";
  JsonWriter json(command.result.body);
  json.begin_object().key("error").begin_object().key("message").string(wanted.message);
  json.key("type").string("worker_error").key("param").null();
  json.key("code").string(wanted.code).end_object().end_object();
  Result<Held> held = co_await holder.service->commit(std::move(command), call.exchange.loop());
  co_return held;
}

http::Task<Result<Held>> fail_for_now(const Holder& holder, Call& call, const FailRequest& wanted) {
  auto look = [id = holder.lease.id](store::Store& from) { return from.find(id); };
  Result<std::optional<store::Job>> job = co_await holder.service->read(call.exchange.loop(), look);
  if (!job) co_return std::unexpected(std::move(job.error()));
  if (!*job) co_return Held::kGone;
  const auto queue = holder.service->queue((*job)->queue);
  const config::JobBackoff backoff = queue ? queue->backoff : config::JobBackoff();
  store::Fail command;
  command.lease = holder.lease;
  command.error.code = wanted.code;
  command.error.message = wanted.message;
  command.error.ended = jobs::store_now();
  thread_local std::minstd_rand random{std::random_device{}()};
  const Duration otherwise =
      jobs::backoff_of(backoff, (*job)->receives, std::uniform_real_distribution<double>(0, 1)(random));
  command.retry_at = command.error.ended +
                     (wanted.retry_after ? microseconds(*wanted.retry_after) : microseconds(otherwise));
  Result<store::Fail::Reply> failed =
      co_await holder.service->commit(std::move(command), call.exchange.loop());
  if (!failed) co_return std::unexpected(std::move(failed.error()));
  co_return failed->held;
}

}  // namespace

http::Task<Status> fail_lease(Gateway& gateway, Call& call) {
  const Result<Holder> holder = holder_of(gateway, call);
  if (!holder) co_return std::unexpected(holder.error());
  const Result<FailRequest> wanted = read_fail_request(call);
  if (!wanted) co_return std::unexpected(wanted.error());
  Result<Held> held = Held::kDone;
  if (wanted->permanent) {
    held = co_await fail_for_good(*holder, call, *wanted);
  } else {
    held = co_await fail_for_now(*holder, call, *wanted);
  }
  Status answered = co_await answer_held(*holder->service, call, holder->lease.id, std::move(held));
  co_return answered;
}

http::Task<Status> release_lease(Gateway& gateway, Call& call) {
  const Result<Holder> holder = holder_of(gateway, call);
  if (!holder) co_return std::unexpected(holder.error());
  JsonBody body;
  if (Status parsed = parse_body(call, body, {"delay"}); !parsed) co_return parsed;
  const auto delay = body.number("delay", 0, kLongestDelay);
  if (!delay) co_return std::unexpected(delay.error());
  const store::Time wait = microseconds(delay->value_or(0));
  const store::Release command = {.lease = holder->lease,
                                  .run_after = wait == 0 ? store::kNever : jobs::store_now() + wait};
  Result<Held> held = co_await holder->service->commit(command, call.exchange.loop());
  Status answered = co_await answer_held(*holder->service, call, holder->lease.id, std::move(held));
  co_return answered;
}

}  // namespace waybill::api
