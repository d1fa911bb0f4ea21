#include "api/answer_later.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "api/gateway.h"
#include "api/job_access.h"
#include "api/job_body.h"
#include "api/job_request.h"
#include "api/job_result.h"
#include "api/job_submit.h"
#include "api/model_answer.h"
#include "api/prefer.h"
#include "api/request_hash.h"
#include "api/text_work.h"

namespace waybill::api {
namespace {

using upstream::Operation;

constexpr std::string_view kDefaultQueue = "default";
constexpr Duration kLongestWait = std::chrono::seconds(static_cast<int>(kMostWait));

TimePoint now() noexcept { return std::chrono::steady_clock::now(); }

std::string_view queue_of(const http::Request& request) noexcept {
  const std::string_view queue = request.header("x-waybill-queue");
  return queue.empty() ? kDefaultQueue : queue;
}

// Whether the queue takes only what has a key, and the call has none.
bool lacks_key(const jobs::Service& service, const http::Request& request) {
  if (!request.header("idempotency-key").empty()) return false;
  const auto queue = service.queue(queue_of(request));
  return queue != nullptr && queue->require_idempotency_key;
}

Result<store::Submit> read_call(const Call& call, const jobs::Service& service, Operation operation) {
  const std::string& body = call.request().body;
  const JobSource source = job_source(call, service);
  if (Status good = check_idempotency_key(source.idempotency_key); !good)
    return std::unexpected(std::move(good.error()));
  if (Status good = check_call(operation, body, source); !good)
    return std::unexpected(std::move(good.error()));
  return job_of_call(operation, body, queue_of(call.request()), source);
}

// As the call itself would have been answered.
http::Task<Status> answer_ended(jobs::Service& service, Call& call, const store::Job& job) {
  if (job.state == store::State::kDead) {
    std::string why = "It was tried as often as it may be.";
    if (!job.errors.empty()) why = job.errors.back().message;
    co_return fail(ErrorCode::kUpstreamFailed, std::move(why));
  }
  Status answered = co_await answer_with_result(service, call, job);
  co_return answered;
}

http::Task<Status> answer_as_job(Gateway& gateway, Call& call, Operation operation, Duration wait) {
  jobs::Service& service = *gateway.jobs();
  Result<store::Submit> submit = store::Submit();
  auto read = [&]() -> Status {
    submit = read_call(call, service, operation);
    if (!submit) return std::unexpected(submit.error());
    return {};
  };
  Status status = co_await read_body(call, read);
  if (!status) co_return status;
  Result<Accepted> made = co_await submit_job(service, call.exchange.loop(), std::move(*submit));
  if (!made) co_return std::unexpected(std::move(made.error()));
  if (wait > Duration::zero() || made->replayed) {
    const TimePoint until = end_of_wait(call, wait);
    Result<store::Job> job = co_await wait_for_end(gateway, service, call, made->job.id, until);
    if (!job) co_return std::unexpected(std::move(job.error()));
    if (wait > Duration::zero() && is_terminal(job->state)) {
      call.response().add_header("x-waybill-job-id", to_string(job->id));
      if (made->replayed) call.response().add_header("Idempotent-Replayed", "true");
      status = co_await answer_ended(service, call, *job);
      co_return status;
    }
    made->job = std::move(*job);
  }
  write_accepted(*made, call.response());
  co_return Status{};
}

// How long a call to the model would take that came now: at the target where that is shortest, its provider's
// queue, and then what calls to it have taken. Zero: nothing is known.
Duration predicted(const upstream::Model& model, upstream::Lane lane) {
  Duration shortest = Duration::max();
  for (const upstream::PoolMember& member : model.pool) {
    const upstream::LaneQueue::Stats lanes = member.target->provider->lanes().stats(now());
    const Duration wait =
        lane == upstream::Lane::kBatch ? lanes.batch.predicted_wait : lanes.interactive.predicted_wait;
    shortest = std::min(shortest, wait + member.target->load.latency());
  }
  return model.pool.empty() ? Duration::zero() : shortest;
}

std::optional<Duration> gateway_timeout(const http::Request& request) {
  const std::string_view text = request.header("x-waybill-gateway-timeout-ms");
  std::int64_t milliseconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), milliseconds);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || milliseconds <= 0)
    return std::nullopt;
  return std::chrono::milliseconds(std::min<std::int64_t>(milliseconds, 86'400'000));
}

}  // namespace

http::Task<std::optional<Status>> answer_later(Gateway& gateway, Call& call, Operation operation) {
  if (gateway.jobs() == nullptr || call.job != nullptr) co_return std::nullopt;
  Preference preference = read_preference(call.request());
  if (!preference.respond_async) co_return std::nullopt;
  if (preference.wait) preference.wait = std::min<Duration>(*preference.wait, kLongestWait);
  Status status =
      co_await answer_as_job(gateway, call, operation, preference.wait.value_or(Duration::zero()));
  if (status) call.response().add_header("Preference-Applied", applied(preference));
  co_return status;
}

http::Task<std::optional<Status>> promote(Gateway& gateway, Call& call, Operation operation,
                                          const ModelChoice& choice) {
  if (gateway.jobs() == nullptr || call.job != nullptr) co_return std::nullopt;
  const Duration after = gateway.jobs()->settings()->promote_after;
  const std::optional<Duration> timeout = gateway_timeout(call.request());
  if (after == Duration::zero() || !timeout) co_return std::nullopt;
  // It did not ask to become a job, and so is not refused for what only a job needs.
  if (lacks_key(*gateway.jobs(), call.request())) co_return std::nullopt;
  if (predicted(*choice.model, lane_of(call.request())) <= std::min(after, *timeout)) co_return std::nullopt;
  Status status = co_await answer_as_job(gateway, call, operation, Duration::zero());
  co_return status;
}

}  // namespace waybill::api
