// A job's request as an HTTP exchange without a connection, so that what runs later goes the way of what runs
// at once.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "api/job_attributes.h"
#include "config/jobs_config.h"
#include "http/cancellation.h"
#include "http/exchange.h"
#include "jobs/performer.h"

namespace waybill::api {

// On the loop of its performance, which outlives it. The answer is in `response`, or, of one that came in
// pieces, in streamed(); its events have gone to the performance as they came.
class JobExchange final : public http::Exchange {
 public:
  JobExchange(jobs::Performance& performance, config::JobLane lane, std::size_t max_answer_bytes);

  [[nodiscard]] http::EventLoop& loop() noexcept override { return performance_.loop(); }
  [[nodiscard]] const http::Peer& peer() const noexcept override { return peer_; }
  void watch_for_hang_up(std::move_only_function<void()> on_hang_up) override;
  http::Task<bool> write_body(std::string_view piece) override;
  [[nodiscard]] bool body_begun() const noexcept override { return begun_; }

  [[nodiscard]] std::string& streamed() noexcept { return streamed_; }
  // The stream grew beyond the bound, and was ended there.
  [[nodiscard]] bool too_large() const noexcept { return too_large_; }
  // For providers: the job's own key, else its id.
  [[nodiscard]] std::string_view idempotency_key() const noexcept { return attributes_.idempotency_key; }

 private:
  jobs::Performance& performance_;
  const std::size_t max_answer_bytes_;
  const http::Peer peer_;
  JobAttributes attributes_;  // the request's headers point into them
  std::move_only_function<void()> on_hang_up_;
  std::string streamed_;
  bool begun_ = false, too_large_ = false;
  http::Cancellation::Listener listener_;  // the last: nothing is called when the rest is gone
};

}  // namespace waybill::api
