#include "jobs/runner.h"

#include <algorithm>
#include <chrono>
#include <latch>
#include <utility>

#include "jobs/service.h"

namespace waybill::jobs {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(100);
constexpr unsigned kTicksOfRefresh = 20;                        // of the metrics
constexpr Duration kBetweenRemovals = std::chrono::seconds(1);  // of what is old
constexpr int kRenewalsOfALease = 3;                            // while it lasts: two may fail
constexpr std::size_t kMostAtATime = 1000;                      // settlements that are written again

store::Time microseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

// The store refused for a reason that passes.
bool may_pass(const Error& error) {
  return error.code == ErrorCode::kStoreUnavailable || error.code == ErrorCode::kOverloaded;
}

store::Held held_of(store::Held held) { return held; }
store::Held held_of(const store::Fail::Reply& reply) { return reply.held; }

}  // namespace

Runner::Runner(store::Writer& writer, JobMetrics& metrics, telemetry::Log& log, Performer& performer,
               std::vector<http::EventLoop*> loops, RunnerOptions options)
    : writer_(writer),
      metrics_(metrics),
      log_(log),
      performer_(performer),
      loops_(std::move(loops)),
      home_(*loops_.front()),
      options_(std::move(options)),
      settlements_(options_.max_unsettled_bytes) {}

void Runner::post(std::move_only_function<void(Runner&)> work) {
  home_.post([self = shared_from_this(), work = std::move(work)]() mutable { work(*self); });
}

void Runner::start(std::shared_ptr<const config::Jobs> jobs) {
  post([jobs = std::move(jobs)](Runner& self) mutable {
    self.tick_ = std::make_unique<http::Deadline>(self.home_, [runner = &self] { runner->tick(); });
    self.apply(std::move(jobs));
    self.tick();
  });
}

void Runner::configure(std::shared_ptr<const config::Jobs> jobs) {
  post([jobs = std::move(jobs)](Runner& self) mutable {
    self.apply(std::move(jobs));
    self.look();
  });
}

void Runner::apply(std::shared_ptr<const config::Jobs> jobs) {
  jobs_ = std::move(jobs);
  std::set<std::string_view> worked_on;
  for (const config::JobQueue& each : jobs_->queues) {
    if (each.workers != config::QueueWorkers::kServer) continue;
    worked_on.insert(each.name);
    std::shared_ptr<const config::JobQueue> queue(jobs_, &each);
    const auto [at, added] = queues_.try_emplace(each.name, queue);
    if (!added) at->second.configure(std::move(queue), now());
  }
  for (auto& [name, queue] : queues_) {
    if (!worked_on.contains(name)) queue.retire();
  }
}

// --- what comes from the store

void Runner::on_changes(std::span<const store::Change> changes) {
  const std::lock_guard lock(news_mutex_);
  bool any = false;
  for (const store::Change& change : changes) {
    if (change.events) continue;
    switch (change.state) {
      case store::State::kQueued:
        any = woken_.insert(change.queue).second || any;
        break;
      case store::State::kScheduled:
        if (change.run_after != store::kNever && (due_ == store::kNever || change.run_after < due_)) {
          due_ = change.run_after;
          any = true;
        }
        break;
      case store::State::kRunning:
      case store::State::kCompleted:
      case store::State::kFailed:
        break;
      case store::State::kHeld:
      case store::State::kCancelled:
      case store::State::kExpired:
      case store::State::kDead:
        if (change.fence == 0) break;  // nobody ever had it
        lost_.emplace_back(change.id, change.fence);
        any = true;
        break;
    }
  }
  if (!any || std::exchange(news_posted_, true)) return;
  post([](Runner& self) {
    std::set<std::string, std::less<>> woken;
    std::vector<std::pair<Uuid, std::uint64_t>> lost;
    store::Time due = store::kNever;
    {
      const std::lock_guard relock(self.news_mutex_);
      woken.swap(self.woken_);
      lost.swap(self.lost_);
      due = std::exchange(self.due_, store::kNever);
      self.news_posted_ = false;
    }
    if (self.stopped_) return;
    for (const auto& [id, fence] : lost) self.cancel(id, fence, RunningJob::Why::kLost);
    for (const std::string& name : woken) {
      if (const auto found = self.queues_.find(name); found != self.queues_.end()) found->second.wake();
    }
    if (due != store::kNever) {
      const auto wait = std::chrono::microseconds(std::max<store::Time>(0, due - self.options_.wall()));
      if (wait < kTick) self.schedule(self.now() + wait);
    }
    self.claim();
  });
}

// --- time

void Runner::schedule(TimePoint at) {
  if (tick_ == nullptr || at >= next_tick_) return;
  next_tick_ = at;
  tick_->set(at);
}

void Runner::tick() {
  next_tick_ = now() + kTick;
  tick_->set(next_tick_);
  ++ticks_;
  if (options_.refresh && ticks_ % kTicksOfRefresh == 1) options_.refresh();
  look();
}

// The order matters once the store takes changes again: what ended is written, and what runs is renewed,
// before leases that ran out meanwhile are looked for.
void Runner::look() {
  if (options_.watch != nullptr) options_.watch->look(writer_.is_writable());
  write_again();
  renew();
  sweep();
  claim();
}

void Runner::sweep() {
  const bool behind = settlements_.waiting() > 0 || !not_renewed_.empty();
  if (sweeping_ || stopped_ || behind || !writer_.is_writable()) return;
  store::Sweep sweep;
  const bool with_retention = now() >= retention_at_;
  if (with_retention) retention_at_ = now() + kBetweenRemovals;
  for (const config::JobQueue& queue : jobs_->queues) {
    if (queue.in_doubt == config::InDoubt::kHold) sweep.hold_in_doubt.push_back(queue.name);
    if (!with_retention) continue;
    sweep.retention.push_back({.queue = queue.name,
                               .completed_us = microseconds(queue.retention.completed),
                               .failed_us = microseconds(queue.retention.failed),
                               .dead_us = microseconds(queue.retention.dead)});
  }
  if (with_retention) {
    const std::int64_t ttl = microseconds(jobs_->idempotency_ttl);
    sweep.retention.push_back({std::string(kCallQueue), ttl, ttl, ttl});
  }
  sweeping_ = true;
  writer_.commit(std::move(sweep), home_, [self = shared_from_this()](Result<store::Sweep::Reply> reply) {
    self->sweeping_ = false;
    if (!reply) self->refused(reply.error());
    if (!reply || self->stopped_) return;
    if (reply->in_doubt > 0)
      self->log_.warn("jobs were lost by their workers when their calls had begun",
                      {{"jobs", reply->in_doubt}});
    if (reply->more) self->sweep();
  });
}

void Runner::renew() {
  if (stopped_ || !writer_.is_writable()) return;
  std::map<Duration, std::vector<store::Lease>> due;
  const auto add = [this, &due](Duration visibility, const store::Lease& lease) {
    if (renewing_.contains(visibility)) return;
    const auto [at, added] = renew_at_.try_emplace(visibility, now() + visibility / kRenewalsOfALease);
    if (at->second <= now()) due[visibility].push_back(lease);
  };
  for (const auto& [id, running] : running_) add(running.queue->visibility, {id, running.fence});
  // What has ended since needs no renewal.
  std::erase_if(not_renewed_, [this](Duration visibility) {
    return std::ranges::none_of(
        running_, [visibility](const auto& each) { return each.second.queue->visibility == visibility; });
  });
  for (auto& [visibility, leases] : due) {
    renew_at_[visibility] = now() + visibility / kRenewalsOfALease;
    renewing_.insert(visibility);
    store::Renew command{leases, options_.wall() + microseconds(visibility)};
    writer_.commit(std::move(command), home_,
                   [self = shared_from_this(), of = visibility, renewed = std::move(leases)](
                       Result<store::Renew::Reply> reply) { self->renewed(of, renewed, reply); });
  }
}

void Runner::renewed(Duration visibility, const std::vector<store::Lease>& leases,
                     const Result<store::Renew::Reply>& reply) {
  renewing_.erase(visibility);
  if (!reply) {
    refused(reply.error());
    not_renewed_.insert(visibility);
    renew_at_[visibility] = now();  // at the next tick
    return;
  }
  not_renewed_.erase(visibility);
  for (std::size_t i = 0; i < leases.size(); ++i) {
    if ((*reply)[i] != store::Held::kDone) cancel(leases[i].id, leases[i].fence, RunningJob::Why::kLost);
  }
}

// --- from a claim to the end

void Runner::claim() {
  if (stopping_claims_ || stopped_ || settlements_.waiting() > 0 || !writer_.is_writable()) return;
  for (auto& [name, queue] : queues_) {
    const std::size_t wanted = queue.wanted(now());
    if (wanted == 0) continue;
    queue.claim(wanted, now());
    ++claims_;
    store::Claim command;
    command.queue = name;
    command.max = wanted;
    command.until = options_.wall() + microseconds(queue.queue()->visibility);
    writer_.commit(std::move(command), home_,
                   [self = shared_from_this(), of = name](Result<store::Claim::Reply> reply) {
                     self->claimed(of, std::move(reply));
                   });
  }
  tell_idle();
}

void Runner::claimed(const std::string& name, Result<store::Claim::Reply> reply) {
  --claims_;
  if (stopped_) return;  // the leases end with the process
  QueueState& queue = queues_.find(name)->second;
  if (!reply) {
    refused(reply.error());
    queue.claim_failed(now());
    return tell_idle();
  }
  queue.claimed(reply->size(), now());
  std::uint64_t foreign = 0;
  for (store::Claim::Leased& leased : *reply) {
    metrics_.claimed(leased.job, options_.wall());
    if (stopping_claims_) {
      give_back(leased);
      queue.ended(false, now(), 0);
    } else if (leased.job.endpoint == store::kExternalEndpoint) {
      bury(leased);
      queue.ended(false, now(), 0);
      ++foreign;
    } else {
      run(std::move(leased), queue);
    }
  }
  if (foreign > 0) {
    log_.warn("jobs for workers elsewhere are in a queue of this server's; they are dead letters now",
              {{"queue", name}, {"jobs", foreign}});
  }
  if (!reply->empty()) claim();
  tell_idle();
}

void Runner::run(store::Claim::Leased leased, QueueState& queue) {
  http::EventLoop& loop = *loops_[next_loop_++ % loops_.size()];
  const Uuid id = leased.job.id;
  const std::uint64_t fence = leased.job.fence;
  auto told = [self = shared_from_this(), lease = store::Lease{id, fence},
               name = queue.queue()->name](Ended how) mutable {
    self->post([lease, name, how = std::move(how)](Runner& runner) mutable {
      runner.ended(lease, name, std::move(how));
    });
  };
  auto job = std::make_shared<RunningJob>(std::move(leased), queue.queue(), loop, writer_, std::move(told));
  running_.emplace(id, Running{job, fence, queue.queue(), &loop, now()});
  loop.post([self = shared_from_this(), job = std::move(job)] { job->start(self->performer_); });
}

void Runner::give_back(const store::Claim::Leased& leased) {
  Settlement settlement;
  settlement.lease = {leased.job.id, leased.job.fence};
  settlement.queue = leased.job.queue;
  settlement.how = store::Release{.lease = settlement.lease};
  settle(std::move(settlement));
}

// It was submitted while its queue had workers elsewhere, and is no call that could be made here. As a dead
// letter it can be redriven when the queue has them again.
void Runner::bury(const store::Claim::Leased& leased) {
  Settlement settlement;
  settlement.lease = {leased.job.id, leased.job.fence};
  settlement.queue = leased.job.queue;
  store::AttemptError error;
  error.code = "queue_changed";
  error.message =
      "the job is for workers elsewhere (workers: external), and its queue is worked on by the server now";
  error.ended = options_.wall();
  metrics_.attempt_failed(settlement.queue, error.code);
  settlement.how = store::Fail{.lease = settlement.lease, .error = std::move(error), .dead = true};
  settle(std::move(settlement));
}

void Runner::refused(const Error& error) {
  if (options_.watch != nullptr) options_.watch->failed(error);
}

void Runner::cancel(const Uuid& id, std::uint64_t fence, RunningJob::Why why) {
  const auto [first, last] = running_.equal_range(id);
  for (auto each = first; each != last; ++each) {
    if (each->second.fence > fence) continue;  // the news is of an earlier lease
    each->second.loop->post([job = each->second.job, why] { job->cancel(why); });
  }
}

void Runner::ended(const store::Lease& lease, const std::string& queue, Ended how) {
  if (stopped_) return;
  const auto [first, last] = running_.equal_range(lease.id);
  const auto found =
      std::find_if(first, last, [&lease](const auto& each) { return each.second.fence == lease.fence; });
  const Running running = std::move(found->second);
  running_.erase(found);
  metrics_.ran(queue, now() - running.begun);
  if (!how.threw.empty())
    log_.error("a job's call ended with an exception", {{"job", to_string(lease.id)}, {"what", how.threw}});
  std::optional<Settlement> settlement = settlement_of(lease, running, how);
  const bool released = settlement && std::holds_alternative<store::Release>(settlement->how);
  queues_.find(queue)->second.ended(released, now(), random());
  if (settlement) settle(std::move(*settlement));
  claim();
  tell_idle();
}

std::optional<Settlement> Runner::settlement_of(const store::Lease& lease, const Running& running,
                                                Ended& how) {
  if (how.why == RunningJob::Why::kLost) return std::nullopt;
  const config::JobQueue& queue = *running.queue;
  const store::Time wall = options_.wall();
  Performed& performed = how.performed;
  performed.called = performed.called || how.begun;
  const bool completed = how.answered && classify(performed) == Answered::kCompleted;
  Verdict verdict;
  if (how.why != RunningJob::Why::kNone && !completed) {
    verdict = how.why == RunningJob::Why::kShutDown
                  ? judge_interrupted(queue, how.begun, wall)
                  : judge_overdue(queue, running.job->job().receives, how.begun, wall, random());
  } else {
    verdict = judge(performed, queue, running.job->job().receives,
                    queues_.find(queue.name)->second.releases(), wall, random());
  }
  Settlement settlement;
  settlement.lease = lease;
  settlement.queue = queue.name;
  settlement.events = std::move(how.events);
  switch (verdict.what) {
    case Verdict::What::kFinish:
      if (verdict.state == store::State::kFailed)
        metrics_.attempt_failed(queue.name, error_of(performed, wall).code);
      settlement.how = store::Finish{.lease = settlement.lease,
                                     .state = verdict.state,
                                     .result = {.status = performed.status,
                                                .content_type = std::move(performed.content_type),
                                                .body = std::move(performed.body),
                                                .facts = std::move(performed.facts)}};
      break;
    case Verdict::What::kFail:
      metrics_.attempt_failed(queue.name, verdict.error.code);
      settlement.how =
          store::Fail{.lease = settlement.lease, .error = std::move(verdict.error), .retry_at = verdict.at};
      break;
    case Verdict::What::kRelease:
      settlement.how = store::Release{.lease = settlement.lease, .run_after = verdict.at};
      break;
    case Verdict::What::kLeave:
      return std::nullopt;
  }
  return settlement;
}

// --- writing what ended

void Runner::settle(Settlement settlement) { write(settlements_.add(std::move(settlement))); }

void Runner::write(const Settlement& settlement) {
  const Uuid id = settlement.lease.id;
  // Each is copied: it is needed again when it cannot be written.
  if (!settlement.events.empty()) {
    writer_.commit(store::Append{settlement.lease, settlement.events}, home_,
                   [self = shared_from_this(), id](const Result<store::Held>& held) {
                     if (held) self->settlements_.events_written(id);
                   });
  }
  const auto done = [self = shared_from_this(), id, queue = settlement.queue](const auto& reply) {
    self->written(
        id, reply ? Result<store::Held>(held_of(*reply)) : Result<store::Held>(std::unexpect, reply.error()),
        queue);
  };
  std::visit([this, &done](const auto& command) { writer_.commit(command, home_, done); }, settlement.how);
}

void Runner::written(const Uuid& id, const Result<store::Held>& held, std::string_view queue) {
  if (stopped_) return;
  if (!held) refused(held.error());
  if (held || !may_pass(held.error())) {
    if (held && *held != store::Held::kDone) {
      log_.info("a job's end came when its lease was lost, and does not count",
                {{"job", to_string(id)}, {"queue", queue}});
    } else if (!held && held.error().code != ErrorCode::kShuttingDown) {
      log_.error("a job's end cannot be written; its lease will run out",
                 {{"job", to_string(id)}, {"queue", queue}, {"why", held.error().message}});
    }
    settlements_.remove(id);
    claim();
  } else {
    if (settlements_.waiting() == 0) {
      log_.error("the ends of jobs cannot be written and are kept in memory; nothing more is begun",
                 {{"why", held.error().message}});
    }
    if (const std::size_t dropped = settlements_.keep(id); dropped > 0)
      log_.error("answers of jobs were dropped: too many wait for the store", {{"jobs", dropped}});
  }
  metrics_.set_unsettled(settlements_.waiting());
  tell_idle();
}

void Runner::write_again() {
  if (stopped_ || settlements_.waiting() == 0 || !writer_.is_writable()) return;
  for (const Settlement* each : settlements_.take(kMostAtATime)) write(*each);
}

// --- the end

void Runner::tell_idle() {
  const bool idle = running_.empty() && claims_ == 0 && settlements_.size() == 0;
  const std::lock_guard lock(idle_mutex_);
  if (std::exchange(idle_, idle) != idle) idle_changed_.notify_all();
}

void Runner::stop_claiming() {
  std::latch done(1);
  post([&done](Runner& self) {
    self.stopping_claims_ = true;
    self.tell_idle();
    done.count_down();
  });
  done.wait();
}

bool Runner::is_idle() const {
  const std::lock_guard lock(idle_mutex_);
  return idle_;
}

bool Runner::wait_idle(TimePoint deadline) const {
  std::unique_lock lock(idle_mutex_);
  return idle_changed_.wait_until(lock, deadline, [this] { return idle_; });
}

void Runner::interrupt() {
  post([](Runner& self) {
    for (const auto& [id, running] : self.running_)
      self.cancel(id, running.fence, RunningJob::Why::kShutDown);
  });
}

void Runner::stop() {
  std::latch home(1);
  post([&home](Runner& self) {
    self.stopped_ = true;
    self.tick_.reset();
    for (const auto& [id, running] : self.running_)
      running.loop->post([job = running.job] { job->abandon(); });
    self.running_.clear();
    if (self.settlements_.size() > 0) {
      self.log_.error("jobs have ended that could not be written; they will be found in doubt",
                      {{"jobs", self.settlements_.size()}});
    }
    home.count_down();
  });
  home.wait();
  std::latch loops(static_cast<std::ptrdiff_t>(loops_.size()));
  for (http::EventLoop* loop : loops_) loop->post([&loops] { loops.count_down(); });
  loops.wait();
}

}  // namespace waybill::jobs
