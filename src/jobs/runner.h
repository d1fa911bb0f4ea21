// The workers of the queues that this server works on.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "config/jobs_config.h"
#include "http/deadline.h"
#include "http/event_loop.h"
#include "jobs/job_metrics.h"
#include "jobs/performer.h"
#include "jobs/queue_state.h"
#include "jobs/retry_policy.h"
#include "jobs/running_job.h"
#include "jobs/settlements.h"
#include "jobs/store_watch.h"
#include "store/writer.h"
#include "telemetry/log.h"

namespace waybill::jobs {

struct RunnerOptions {
  std::size_t max_unsettled_bytes = 256U << 20;  // answers that the store has not taken yet
  std::function<store::Time()> wall;             // the time as the store counts it
  std::function<void()> refresh;                 // now and then, on the home loop: for metrics
  StoreWatch* watch = nullptr;                   // told how the store is
};

// All that is decided here is decided on one of the loops, its home; jobs run on all of them. While jobs have
// ended that could not be written nothing more is claimed, and no lease is taken to have run out.
class Runner : public std::enable_shared_from_this<Runner> {
 public:
  // The references outlive stop(). At least one loop.
  Runner(store::Writer& writer, JobMetrics& metrics, telemetry::Log& log, Performer& performer,
         std::vector<http::EventLoop*> loops, RunnerOptions options);

  // These are thread-safe.
  void start(std::shared_ptr<const config::Jobs> jobs);
  void configure(std::shared_ptr<const config::Jobs> jobs);
  void on_changes(std::span<const store::Change> changes);

  // Not to be called on a loop's thread. stop_claiming() begins the end; is_idle(): nothing runs any more and
  // all is written.
  void stop_claiming();
  [[nodiscard]] bool is_idle() const;
  bool wait_idle(TimePoint deadline) const;
  // Takes back what runs.
  void interrupt();
  // Returns when nothing here will use the writer or the performer's results any more.
  void stop();

 private:
  struct Running {
    std::shared_ptr<RunningJob> job;
    std::uint64_t fence = 0;
    std::shared_ptr<const config::JobQueue> queue;
    http::EventLoop* loop = nullptr;
    TimePoint begun{};
  };
  using Ended = RunningJob::Ended;

  // On the home loop.
  void tick();
  void look();  // whatever may be done now
  void schedule(TimePoint at);
  void apply(std::shared_ptr<const config::Jobs> jobs);
  void claim();
  void claimed(const std::string& queue, Result<store::Claim::Reply> reply);
  void run(store::Claim::Leased leased, QueueState& queue);
  void give_back(const store::Claim::Leased& leased);
  void bury(const store::Claim::Leased& leased);
  void refused(const Error& error);
  void cancel(const Uuid& id, std::uint64_t fence, RunningJob::Why why);
  void ended(const store::Lease& lease, const std::string& queue, Ended how);
  [[nodiscard]] std::optional<Settlement> settlement_of(const store::Lease& lease, const Running& running,
                                                        Ended& how);
  void settle(Settlement settlement);
  void write(const Settlement& settlement);
  void written(const Uuid& id, const Result<store::Held>& held, std::string_view queue);
  void write_again();
  void renew();
  void renewed(Duration visibility, const std::vector<store::Lease>& leases,
               const Result<store::Renew::Reply>& reply);
  void sweep();
  void tell_idle();

  [[nodiscard]] TimePoint now() const { return std::chrono::steady_clock::now(); }
  [[nodiscard]] double random() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  void post(std::move_only_function<void(Runner&)> work);

  store::Writer& writer_;
  JobMetrics& metrics_;
  telemetry::Log& log_;
  Performer& performer_;
  const std::vector<http::EventLoop*> loops_;
  http::EventLoop& home_;
  const RunnerOptions options_;

  // The home loop's thread only.
  std::unique_ptr<http::Deadline> tick_;
  TimePoint next_tick_{};
  std::shared_ptr<const config::Jobs> jobs_;
  std::map<std::string, QueueState, std::less<>> queues_;  // also those without workers here, while jobs run
  // Several of one job where a lease was lost, the job claimed again, and its first call has not ended yet.
  std::unordered_multimap<Uuid, Running, UuidHash> running_;
  Settlements settlements_;
  std::map<Duration, TimePoint> renew_at_;  // by visibility
  std::set<Duration> renewing_, not_renewed_;
  TimePoint retention_at_{};
  bool sweeping_ = false, stopping_claims_ = false, stopped_ = false;
  std::size_t claims_ = 0, next_loop_ = 0;
  unsigned ticks_ = 0;
  std::mt19937_64 random_{std::random_device{}()};

  std::mutex news_mutex_;  // from the writer's thread
  std::set<std::string, std::less<>> woken_;
  std::vector<std::pair<Uuid, std::uint64_t>> lost_;
  store::Time due_ = store::kNever;  // the next scheduled job that is due before the next tick
  bool news_posted_ = false;

  mutable std::mutex idle_mutex_;
  mutable std::condition_variable idle_changed_;
  bool idle_ = true;
};

}  // namespace waybill::jobs
