// GET /v1/jobs/{id}/events: how a job goes, as server-sent events; of one that streams, all that its model
// says, from the beginning for who comes late.
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "api/endpoint.h"
#include "api/gateway.h"
#include "api/job_access.h"
#include "api/job_chunks.h"
#include "api/job_json.h"
#include "api/job_wait.h"
#include "base/json_writer.h"

namespace waybill::api {
namespace {

constexpr std::size_t kPiece = 256U << 10;  // of stored events, read at a time
constexpr Duration kKeepAlive = std::chrono::seconds(15);
constexpr std::string_view kEnd = "end";  // the id of the last event

struct Look {
  std::optional<store::Job> job;
  store::Events events;
};

void append_status(const store::Job& job, std::string_view id, std::string& out) {
  std::string data;
  JsonWriter json(data);
  write_job(json, job);
  fmt::format_to(std::back_inserter(out), "id: {}\nevent: status\ndata: {}\n\n", id, data);
}

}  // namespace

http::Task<Status> job_events(Gateway& gateway, Call& call) {
  Result<jobs::Service*> service = jobs_of(gateway);
  if (!service) co_return std::unexpected(std::move(service.error()));
  const std::string_view last = call.request().header("last-event-id");
  http::Response& response = call.response();
  Result<store::Job> job = co_await find_job(**service, call);
  if (!job) co_return std::unexpected(std::move(job.error()));
  if (last == kEnd) {  // tells an EventSource to come no more
    response.status = 204;
    response.content_type = {};
    co_return Status{};
  }
  JobChunks chunks(parse_chunk_place(last).value_or(ChunkPlace()));
  http::EventLoop& loop = call.exchange.loop();
  JobWait wait(gateway, call.exchange);
  const jobs::Hub::Subscription news = (*service)->hub().watch(
      job->id, loop, [wake = wait.waker()](const store::Change& /*change*/) { wake(); });
  response.content_type = "text/event-stream; charset=utf-8";
  response.add_header("Cache-Control", "no-cache");
  response.add_header("X-Accel-Buffering", "no");
  if (call.request().method == http::Method::kHead) co_return Status{};
  add_id_headers(call);
  std::optional<store::State> told;
  for (bool ended = false; !ended;) {
    // The job first: what it has ended with is then there.
    auto look = [id = job->id, from = chunks.next()](store::Store& store) -> Result<Look> {
      Result<std::optional<store::Job>> found = store.find(id);
      if (!found) return std::unexpected(std::move(found.error()));
      Result<store::Events> events = store.events(id, from, kPiece);
      if (!events) return std::unexpected(std::move(events.error()));
      return Look{.job = std::move(*found), .events = std::move(*events)};
    };
    Result<Look> seen = co_await (*service)->read(loop, look);
    if (!seen) co_return std::unexpected(std::move(seen.error()));
    std::string out;
    const bool more = !seen->events.text.empty();
    const bool over = !seen->job || is_terminal(seen->job->state);
    if (seen->job && !over && told != seen->job->state) {
      told = seen->job->state;
      append_status(*seen->job, chunks.id(), out);
    }
    if (more) chunks.append(seen->events, out);
    if (over && !more) {
      chunks.finish(out);
      if (seen->job) append_status(*seen->job, kEnd, out);
      ended = true;
    }
    if (!out.empty() || !call.exchange.body_begun()) {
      if (out.empty()) out = ": here\n\n";
      const bool taken = co_await call.exchange.write_body(out);
      if (!taken) co_return fail(ErrorCode::kCancelled, "The client went away.");
    }
    if (ended || more) continue;
    const JobWait::End end = co_await wait.wait(std::chrono::steady_clock::now() + kKeepAlive);
    if (end == JobWait::End::kGone) co_return fail(ErrorCode::kCancelled, "The client went away.");
    if (end == JobWait::End::kStopping) ended = true;
    if (end == JobWait::End::kTime) {
      const bool taken = co_await call.exchange.write_body(": still here\n\n");
      if (!taken) co_return fail(ErrorCode::kCancelled, "The client went away.");
    }
  }
  co_return Status{};
}

}  // namespace waybill::api
