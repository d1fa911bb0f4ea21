#include "embed/batcher.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <pthread.h>

#include "base/blocked_signals.h"
#include "base/check.h"
#include "embed/batch.h"
#include "embed/batch_cost.h"
#include "embed/batch_queue.h"
#include "embed/wait_forecast.h"

namespace waybill::embed {
namespace {

// The batcher whose computing thread this is, if it is one.
thread_local const void* computing_for = nullptr;

BatcherOptions checked(BatcherOptions options) {
  if (options.threads == 0) options.threads = std::max(1U, std::thread::hardware_concurrency());
  options.max_batch_tokens = std::max<std::size_t>(options.max_batch_tokens, 1);
  options.max_queue_tokens = std::max<std::size_t>(options.max_queue_tokens, 1);
  if (!(options.initial_tokens_per_second >= 1)) options.initial_tokens_per_second = 1;
  return options;
}

enum class Verdict : std::uint8_t { kAccepted, kStopping, kExpired, kFull, kLate, kNoMemory };

constexpr Duration kCostLasts = std::chrono::seconds(1);

constexpr double kYear = 365.0 * 24 * 3600;  // what a Duration can hold with ease

Duration duration_of(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::min(seconds, kYear)));
}

std::unexpected<Error> overloaded(double wait_seconds, std::string message) {
  return std::unexpected<Error>(Error{.code = ErrorCode::kOverloaded,
                                      .message = std::move(message),
                                      .field = {},
                                      .retry_after = duration_of(wait_seconds)});
}

// What a group of items asks for together.
struct Request {
  std::size_t tokens = 0, last_tokens = 0;
  TimePoint deadline = TimePoint::max();
  Duration max_wait = Duration::max();
};

Request request_of(std::span<const Batcher::Item> items) {
  Request out;
  for (const Batcher::Item& item : items) {
    WAYBILL_CHECK(item.executor != nullptr && item.done != nullptr);
    out.tokens += item.ids.size();
    out.deadline = std::min(out.deadline, item.deadline);
    out.max_wait = std::min(out.max_wait, item.max_wait);
  }
  out.last_tokens = items.back().ids.size();
  return out;
}

Status status_of(Verdict verdict, double wait_seconds, Duration left) {
  switch (verdict) {
    case Verdict::kAccepted:
      return {};
    case Verdict::kStopping:
      return fail(ErrorCode::kShuttingDown, "the encoder is shutting down");
    case Verdict::kExpired:
      return fail(ErrorCode::kDeadlineExceeded,
                  "the deadline passed before the text was queued to be embedded");
    case Verdict::kFull:
      return overloaded(
          wait_seconds,
          fmt::format("the encoder's queue is full; an answer would take {:.0f} ms", wait_seconds * 1e3));
    case Verdict::kLate:
      return overloaded(
          wait_seconds,
          fmt::format("the encoder is busy: an answer would take {:.0f} ms and {:.0f} ms are allowed",
                      wait_seconds * 1e3, seconds(left) * 1e3));
    case Verdict::kNoMemory:
      break;
  }
  return fail(ErrorCode::kOverloaded, "no memory to queue the text");
}

}  // namespace

struct Batcher::Impl {
  // kFree: about to look into the queue; somebody who adds to it need not wake anybody for this thread's
  // sake.
  enum class State : std::uint8_t { kFree, kIdle, kComputing };
  struct Worker {
    std::condition_variable wake;
    State state = State::kFree;  // guarded by mutex, as all of it
    TimePoint since{};           // kComputing: when it took its batch,
    std::size_t tokens = 0;      // and how large that is
    bool warm = false;           // has computed before
    std::thread thread;
  };

  Impl(BatchFunction& f, const BatcherOptions& o, const Clock& c)
      : function(f),
        options(checked(o)),
        clock(c),
        workers(options.threads),
        queue(options.max_queue_tokens),
        cost(options.initial_tokens_per_second, options.max_batch_tokens),
        free_in(options.threads) {
    idle.reserve(options.threads);
  }

  void start() {
    const BlockedSignals blocked;  // inherited by the threads
    for (unsigned i = 0; i < options.threads; ++i) {
      workers[i].thread = std::thread([this, i] { work(i); });
      pthread_setname_np(workers[i].thread.native_handle(), fmt::format("embed-{}", i).c_str());
    }
  }

  void work(unsigned index);
  // Waits for items and takes some; false when stopping.
  bool take(Worker& self, Batch& batch);
  void compute(unsigned index, Worker& self, Batch& batch);
  // Decides on a group of items and, if all is well, queues it. The mutex is held.
  Verdict admit(std::span<Item> items, const Request& request, TimePoint now, double& wait);
  // Takes the thread that went idle last, whose caches are the warmest, off the stack. The mutex is held; the
  // caller notifies after it has let go of it.
  Worker* next_to_wake() {
    if (idle.empty() || queue.empty()) return nullptr;
    Worker* worker = idle.back();
    idle.pop_back();
    worker->state = State::kFree;
    return worker;
  }
  // Until the answer to an item of `tokens` behind `others` that would come with it.
  double wait_seconds(std::size_t tokens, TimePoint now, std::size_t others = 0,
                      std::size_t their_tokens = 0);
  // Nobody computes, and when somebody last did is a while ago: the machine may have been busy then. Who is
  // refused because of it teaches nothing, so that everybody could be refused for ever.
  [[nodiscard]] bool cost_is_in_doubt(TimePoint now) const {
    const auto computes = [](const Worker& worker) { return worker.state == State::kComputing; };
    return now - cost_learnt >= kCostLasts && queue.empty() && std::ranges::none_of(workers, computes);
  }
  void stop();

  BatchFunction& function;
  const BatcherOptions options;
  const Clock& clock;
  // Shared: batches whose answers are still with an executor keep their pool alive past the batcher.
  std::shared_ptr<BatchPool> pool = std::make_shared<BatchPool>(options.max_batch_tokens, function.dim());

  std::mutex mutex;  // guards everything below but `thread` and the once flag
  std::vector<Worker> workers;
  std::vector<Worker*> idle;
  BatchQueue queue;
  BatchCost cost;
  TimePoint cost_learnt = clock.now();
  std::vector<double> free_in;  // scratch of wait_seconds()
  BatcherStats counts;          // only what is counted; the rest is filled in by stats()
  bool stopping = false;

  std::once_flag stopped;
};

Batcher::Batcher(BatchFunction& function, const BatcherOptions& options, const Clock& clock)
    : impl_(std::make_unique<Impl>(function, options, clock)) {
  try {
    impl_->start();
  } catch (...) {
    impl_->stop();
    throw;
  }
}

Batcher::~Batcher() { impl_->stop(); }

void Batcher::stop() { impl_->stop(); }

Status Batcher::submit(std::span<Item> items) {
  Impl& b = *impl_;
  const bool hollow =
      items.empty() || std::ranges::any_of(items, [](const Item& item) { return item.ids.empty(); });
  if (hollow) return fail(ErrorCode::kInvalidInput, "there are no tokens to embed");
  const Request request = request_of(items);
  if (request.tokens > b.options.max_queue_tokens) {
    return fail(ErrorCode::kInvalidInput,
                fmt::format("a text of {} tokens does not fit into the encoder's queue of {}; "
                            "cut the text or raise the limit",
                            request.tokens, b.options.max_queue_tokens));
  }
  const TimePoint now = b.clock.now();
  double wait = 0;
  Verdict verdict = Verdict::kAccepted;
  Impl::Worker* woken = nullptr;
  {
    const std::lock_guard lock(b.mutex);
    verdict = b.admit(items, request, now, wait);
    (verdict == Verdict::kAccepted ? b.counts.accepted : b.counts.refused) += items.size();
    woken = b.next_to_wake();
  }
  if (woken != nullptr) woken->wake.notify_one();
  return status_of(
      verdict, wait,
      verdict == Verdict::kLate ? std::min(request.deadline - now, request.max_wait) : Duration{});
}

Verdict Batcher::Impl::admit(std::span<Item> items, const Request& request, TimePoint now, double& wait) {
  if (stopping) return Verdict::kStopping;
  if (request.deadline <= now) return Verdict::kExpired;
  const bool full = !queue.fits(request.tokens);
  if (full || request.deadline != TimePoint::max() || request.max_wait != Duration::max()) {
    wait = wait_seconds(request.last_tokens, now, items.size() - 1, request.tokens - request.last_tokens);
  }
  if (full) return Verdict::kFull;
  if (wait > seconds(std::min(request.deadline - now, request.max_wait))) {
    if (!cost_is_in_doubt(now)) return Verdict::kLate;
    cost_learnt = now;  // it will be
  }
  try {
    queue.reserve(items.size(), request.tokens);
  } catch (const std::bad_alloc&) {
    return Verdict::kNoMemory;
  }
  for (Item& item : items) queue.push(item, now);
  return Verdict::kAccepted;
}

double Batcher::Impl::wait_seconds(std::size_t tokens, TimePoint now, std::size_t others,
                                   std::size_t their_tokens) {
  std::size_t i = 0;
  for (const Worker& worker : workers) {
    free_in[i++] = worker.state == State::kComputing
                       ? remaining_seconds(cost, worker.tokens, seconds(now - worker.since))
                       : 0;
  }
  return forecast_seconds(cost,
                          {queue.tokens() + their_tokens, queue.items() + others, options.max_batch_tokens},
                          tokens, free_in);
}

Duration Batcher::predicted_wait(std::size_t tokens) const noexcept {
  const TimePoint now = impl_->clock.now();
  const std::lock_guard lock(impl_->mutex);
  return duration_of(impl_->wait_seconds(std::max<std::size_t>(tokens, 1), now));
}

void Batcher::Impl::work(unsigned index) {
  computing_for = this;
  Worker& self = workers[index];
  for (;;) {
    Batch* batch = pool->acquire();
    const bool taken = take(self, *batch);
    if (taken) {
      batch->post_dropped();
      if (batch->sequences() != 0) compute(index, self, *batch);
    }
    batch->release();
    if (!taken) return;
  }
}

bool Batcher::Impl::take(Worker& self, Batch& batch) {
  Worker* woken = nullptr;
  {
    std::unique_lock lock(mutex);
    while (queue.empty() && !stopping) {
      self.state = State::kIdle;
      idle.push_back(&self);
      self.wake.wait(lock, [&] { return self.state != State::kIdle; });
    }
    if (stopping) return false;
    // This thread and the others that have nothing to do share what waits.
    std::size_t sharers = 1;
    for (const Worker& worker : workers)
      sharers += &worker != &self && worker.state != State::kComputing ? 1U : 0U;
    const std::size_t share = std::min((queue.tokens() + sharers - 1) / sharers, options.max_batch_tokens);
    const TimePoint now = clock.now();
    const BatchQueue::Taken taken = queue.take(batch, share, options.max_batch_tokens, now);
    counts.expired += taken.expired;
    counts.cancelled += taken.cancelled;
    counts.running_items += batch.sequences();
    counts.running_tokens += batch.tokens();
    self.state = batch.sequences() != 0 ? State::kComputing : State::kFree;
    self.since = now;
    self.tokens = batch.tokens();
    woken = next_to_wake();
  }
  if (woken != nullptr) woken->wake.notify_one();
  return true;
}

void Batcher::Impl::compute(unsigned index, Worker& self, Batch& batch) {
  bool failed = true;
  std::size_t computed = 0;
  std::string reason;
  const TimePoint started = clock.now();
  try {
    computed = function.run(index, batch.packed(), batch.contexts(), batch.out());
    failed = false;
  } catch (const std::exception& e) {
    reason = fmt::format("the encoder failed: {}", e.what());
  } catch (...) {
    reason = "the encoder failed";
  }
  const TimePoint finished = clock.now();
  {
    const std::lock_guard lock(mutex);
    counts.running_items -= batch.sequences();
    counts.running_tokens -= batch.tokens();
    (failed ? counts.failed : counts.computed) += batch.sequences();
    if (!failed) {
      ++counts.batches;
      counts.computed_tokens += computed;
      // A thread's first batch pays for page faults and for buffers that grow.
      if (self.warm) cost.observe(computed, seconds(finished - started));
      cost_learnt = finished;
      self.warm = true;
    }
    self.state = State::kFree;
  }
  if (failed) {
    batch.post_failed(started, finished, std::move(reason));
  } else {
    batch.post_computed(started, finished);
  }
}

void Batcher::Impl::stop() {
  WAYBILL_CHECK(computing_for != this);  // it would wait for itself
  std::call_once(stopped, [this] {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
      for (Worker* worker : idle) worker->state = State::kFree;
      idle.clear();
    }
    for (Worker& worker : workers) worker.wake.notify_one();
    for (bool more = true; more;) {
      Batch* batch = pool->acquire();
      {
        const std::lock_guard lock(mutex);
        counts.stopped += queue.take_stopped(*batch);
        more = !queue.empty();
      }
      batch->post_dropped();
      batch->release();
    }
    for (Worker& worker : workers) {
      if (worker.thread.joinable()) worker.thread.join();
    }
  });
}

BatcherStats Batcher::stats() const {
  const Impl& b = *impl_;
  BatcherStats stats;
  const std::uint64_t answered = b.pool->answered();  // before the rest, which it must not exceed
  {
    const std::lock_guard lock(impl_->mutex);
    stats = b.counts;
    stats.queued_items = b.queue.items();
    stats.queued_tokens = b.queue.tokens();
    stats.tokens_per_second = b.cost.tokens_per_second() * b.options.threads;
    for (const Impl::Worker& worker : b.workers)
      stats.busy_threads += worker.state == Impl::State::kComputing ? 1U : 0U;
  }
  stats.threads = b.options.threads;
  stats.answered = answered;
  stats.completions_threw = b.pool->completions_threw();
  return stats;
}

}  // namespace waybill::embed
