#include "api/job_exchange.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/uuid.h"

namespace waybill::api {

JobExchange::JobExchange(jobs::Performance& performance, config::JobLane lane, std::size_t max_answer_bytes)
    : performance_(performance),
      max_answer_bytes_(max_answer_bytes),
      peer_(),
      attributes_(read_attributes(performance.job().attributes)),
      listener_(performance.cancellation(), [this] {
        cancelled_.store(true, std::memory_order_relaxed);
        if (on_hang_up_) std::exchange(on_hang_up_, nullptr)();
      }) {
  const store::Job& job = performance.job();
  if (attributes_.idempotency_key.empty()) attributes_.idempotency_key = to_string(job.id);
  if (attributes_.correlation_id.empty()) attributes_.correlation_id = to_string(job.id);
  request.method = http::Method::kPost;
  request.target = request.path = job.endpoint;
  request.body = performance.body();
  request.started = request.received = std::chrono::steady_clock::now();
  const auto add = [this](std::string_view name, std::string_view value) {
    if (!value.empty()) request.headers.push_back({name, value});
  };
  add("x-waybill-lane", lane == config::JobLane::kBatch ? "batch" : "interactive");
  add("x-correlation-id", attributes_.correlation_id);
  add("traceparent", attributes_.traceparent);
  add("tracestate", attributes_.tracestate);
  add("x-waybill-session", attributes_.session);
  add("x-waybill-cache", attributes_.cache);
}

void JobExchange::watch_for_hang_up(std::move_only_function<void()> on_hang_up) {
  if (!on_hang_up) return;
  on_hang_up_ = std::move(on_hang_up);
  if (performance_.cancellation().requested()) std::exchange(on_hang_up_, nullptr)();
}

http::Task<bool> JobExchange::write_body(std::string_view piece) {
  if (streamed_.size() + piece.size() > max_answer_bytes_) too_large_ = true;
  if (too_large_ || performance_.cancellation().requested()) co_return false;
  const std::uint32_t receive = performance_.job().receives;
  if (!std::exchange(begun_, true) && receive > 1) {
    // What an attempt before this one has told is still there.
    performance_.events(fmt::format("event: restart\ndata: {{\"receive\":{}}}\n\n", receive));
  }
  streamed_.append(piece);
  performance_.events(piece);
  co_return true;
}

}  // namespace waybill::api
