#include "jobs/job_metrics.h"

#include <algorithm>

namespace waybill::jobs {
namespace {

double seconds_of(store::Time length) { return std::max(0.0, static_cast<double>(length) * 1e-6); }

}  // namespace

void JobMetrics::count(std::span<const store::Change> changes) {
  for (const store::Change& change : changes) {
    const std::string_view queue = change.queue;
    if (change.created) metrics_.jobs_submitted.with({queue}).add();
    if (change.lease_expired) metrics_.lease_expired.with({queue}).add();
    if (change.in_doubt) metrics_.in_doubt.with({queue}).add();
    if (change.events || change.removed) continue;
    if (change.state == store::State::kRunning) metrics_.job_receives.with({queue}).add();
    if (store::is_terminal(change.state))
      metrics_.jobs_finished.with({queue, store::to_string(change.state)}).add();
  }
}

void JobMetrics::committed(std::size_t commands, Duration length) {
  metrics_.store_commit_rows.observe(static_cast<double>(commands));
  metrics_.store_commit_seconds.observe(seconds(length));
}

void JobMetrics::claimed(const store::Job& job, store::Time now) {
  if (job.receives > 1) return;  // since when it has been there again is not known
  metrics_.job_queue_seconds.with({std::string_view(job.queue)})
      .observe(seconds_of(now - std::max(job.created, job.run_after)));
}

void JobMetrics::ran(std::string_view queue, Duration length) {
  metrics_.job_run_seconds.with({queue}).observe(seconds(length));
}

void JobMetrics::attempt_failed(std::string_view queue, std::string_view code) {
  metrics_.job_attempts_failed.with({queue, code}).add();
}

void JobMetrics::set_unsettled(std::size_t jobs) { metrics_.jobs_unsettled.set(static_cast<double>(jobs)); }

void JobMetrics::set_depths(std::span<const store::Depth> depths, std::span<const store::QueueState> queues,
                            store::Time now) {
  const std::lock_guard lock(mutex_);
  for (auto& [of, jobs] : depths_) jobs = 0;
  for (auto& [queue, age] : oldest_) age = 0;
  for (const store::Depth& depth : depths)
    depths_[{depth.queue, depth.state}] += static_cast<double>(depth.jobs);
  for (const store::QueueState& queue : queues)
    oldest_[queue.name] = queue.oldest == store::kNever ? 0 : seconds_of(now - queue.oldest);
  for (const auto& [of, jobs] : depths_) {
    metrics_.jobs_depth.with({std::string_view(of.first), store::to_string(of.second)}).set(jobs);
    if (of.second == store::State::kDead) metrics_.dead_letters.with({std::string_view(of.first)}).set(jobs);
  }
  for (const auto& [queue, age] : oldest_)
    metrics_.jobs_oldest_seconds.with({std::string_view(queue)}).set(age);
}

}  // namespace waybill::jobs
