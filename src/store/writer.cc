#include "store/writer.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>

#include "base/blocked_signals.h"
#include "base/clock.h"

namespace waybill::store {
namespace {

constexpr std::chrono::seconds kProbe{1};
constexpr std::size_t kMostApplied = 4;                        // transactions that wait for a flush
constexpr int kRemembered = 16;                                // about so many transactions make the mean
constexpr Duration kSoonest = std::chrono::milliseconds(100);  // no caller comes back before that

Time system_now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

struct Writer::Impl {
  // Who waits for the reply of the command at the same place.
  struct Waiter {
    Executor* executor = nullptr;
    Done done;
  };
  using Answer = std::pair<Done, Result<Reply>>;

  Impl(Store& to, WriterOptions with) : store(to), options(std::move(with)) {
    if (!options.now) options.now = system_now;
    const BlockedSignals blocked;  // inherited by the thread
    thread = std::thread([this] { run(); });
    flushing_thread = std::thread([this] { run_flushes(); });
    pthread_setname_np(thread.native_handle(), "store");
    pthread_setname_np(flushing_thread.native_handle(), "store-flush");
  }

  // What was applied and is not flushed yet, in that order.
  struct Applied {
    std::vector<Waiter> waiters;
    Result<Committed> committed;
    TimePoint begun;
  };

  void run();
  void apply(std::span<Command> commands, std::span<Waiter> waiters);
  void run_flushes();
  void flush(std::vector<Applied>& batches);
  void probe();
  void tell(std::span<Waiter> waiters, Result<Committed> committed);
  [[nodiscard]] Error overloaded() const;  // under the lock

  Store& store;
  WriterOptions options;

  mutable std::mutex mutex;  // guards the next nine
  std::condition_variable wake, wake_flushes, flushed;
  std::vector<Command> commands;
  std::vector<Waiter> waiters;
  std::vector<Applied> applied;
  std::size_t unanswered = 0;  // commands that were taken from `commands`
  Duration mean_of_command{};
  bool stopping = false, applying = true;

  std::atomic<bool> writable{true};
  std::once_flag stopped;
  std::thread thread, flushing_thread;
};

void Writer::Impl::run() {
  std::vector<Command> taken;
  std::vector<Waiter> taken_waiters;
  std::unique_lock lock(mutex);
  for (;;) {
    const auto awaited = [this] { return stopping || !commands.empty(); };
    if (writable.load(std::memory_order_relaxed)) {
      wake.wait(lock, [&] { return awaited() || !writable.load(std::memory_order_relaxed); });
      if (!awaited()) continue;
    } else if (!wake.wait_for(lock, kProbe, awaited)) {
      lock.unlock();
      probe();
      lock.lock();
      continue;
    }
    if (commands.empty()) break;
    // A disk that is slow makes larger transactions, not more of them that wait for it.
    flushed.wait(lock, [this] { return applied.size() < kMostApplied; });
    taken.swap(commands);
    taken_waiters.swap(waiters);
    unanswered += taken.size();
    lock.unlock();
    const std::size_t total = taken.size();
    const TimePoint begun = std::chrono::steady_clock::now();
    for (std::size_t first = 0; first < total; first += options.max_batch) {
      const std::size_t count = std::min(options.max_batch, total - first);
      apply(std::span(taken).subspan(first, count), std::span(taken_waiters).subspan(first, count));
    }
    const Duration length = std::chrono::steady_clock::now() - begun;
    taken.clear();
    taken_waiters.clear();
    lock.lock();
    mean_of_command += (length / static_cast<std::int64_t>(total) - mean_of_command) / kRemembered;
  }
  applying = false;
  wake_flushes.notify_one();
}

void Writer::Impl::apply(std::span<Command> batch, std::span<Waiter> batch_waiters) {
  const TimePoint begun = std::chrono::steady_clock::now();
  Applied done{{std::make_move_iterator(batch_waiters.begin()), std::make_move_iterator(batch_waiters.end())},
               store.apply(batch, options.now()),
               begun};
  {
    const std::lock_guard lock(mutex);
    applied.push_back(std::move(done));
  }
  wake_flushes.notify_one();
}

void Writer::Impl::run_flushes() {
  std::vector<Applied> batches;
  std::unique_lock lock(mutex);
  for (;;) {
    wake_flushes.wait(lock, [this] { return !applied.empty() || !applying; });
    if (applied.empty()) return;
    batches.swap(applied);
    flushed.notify_one();
    lock.unlock();
    flush(batches);
    std::size_t answered = 0;
    for (const Applied& each : batches) answered += each.waiters.size();
    batches.clear();
    lock.lock();
    unanswered -= answered;
    if (!writable.load(std::memory_order_relaxed)) wake.notify_one();  // to look for better times
  }
}

// One flush for all of them. It is asked for where nothing was written too: what was found may be what
// another has written and the disk has lost.
void Writer::Impl::flush(std::vector<Applied>& batches) {
  const Status done = store.flush();
  for (Applied& each : batches) {
    if (!done) each.committed = std::unexpected(done.error());
    if (!each.committed) {
      if (each.committed.error().code == ErrorCode::kStoreUnavailable) writable = false;
      tell(each.waiters, std::move(each.committed));
      continue;
    }
    if (each.committed->wrote) writable = true;
    if (each.committed->wrote && options.on_commit)
      options.on_commit(each.waiters.size(), std::chrono::steady_clock::now() - each.begun);
    if (options.on_changes && !each.committed->changes.empty()) options.on_changes(each.committed->changes);
    tell(each.waiters, std::move(each.committed));
  }
}

void Writer::Impl::probe() { writable = store.commit({}, options.now()).has_value(); }

// One piece of work for each executor, however many replies it gets: waking a loop costs more than a reply.
void Writer::Impl::tell(std::span<Waiter> batch, Result<Committed> committed) {
  std::vector<std::pair<Executor*, std::vector<Answer>>> posts;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto of = std::ranges::find(posts, batch[i].executor, [](const auto& post) { return post.first; });
    std::vector<Answer>& answers =
        of == posts.end() ? posts.emplace_back(batch[i].executor, std::vector<Answer>()).second : of->second;
    if (committed) {
      answers.emplace_back(std::move(batch[i].done), std::move(committed->replies[i]));
    } else {
      answers.emplace_back(std::move(batch[i].done), std::unexpected(committed.error()));
    }
  }
  for (auto& [executor, answers] : posts) {
    executor->post([told = std::move(answers)]() mutable {
      for (Answer& answer : told) answer.first(std::move(answer.second));
    });
  }
}

Error Writer::Impl::overloaded() const {
  Error error{ErrorCode::kOverloaded,
              "too many changes wait for the disk; raise store.max_waiting, or submit more slowly", ""};
  error.retry_after =
      std::max(kSoonest, mean_of_command * static_cast<std::int64_t>(commands.size() + unanswered));
  return error;
}

Writer::Writer(Store& store, WriterOptions options)
    : impl_(std::make_unique<Impl>(store, std::move(options))) {}

Writer::~Writer() { stop(); }

void Writer::enqueue(Command command, Executor& executor, Done done) {
  std::optional<Error> refused;
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->stopping) {
      refused = Error{ErrorCode::kShuttingDown, "the server is being stopped", ""};
    } else if (impl_->commands.size() + impl_->unanswered >= impl_->options.max_waiting) {
      refused = impl_->overloaded();
    } else {
      impl_->commands.push_back(std::move(command));
      impl_->waiters.push_back({&executor, std::move(done)});
    }
  }
  if (!refused) return impl_->wake.notify_one();
  // NOLINTNEXTLINE(bugprone-use-after-move): who is refused has not been moved to the waiters
  executor.post([done = std::move(done), error = std::move(*refused)]() mutable {
    done(std::unexpected(std::move(error)));
  });
}

bool Writer::is_writable() const noexcept { return impl_->writable.load(std::memory_order_relaxed); }

std::size_t Writer::waiting() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->commands.size() + impl_->unanswered;
}

void Writer::stop() {
  std::call_once(impl_->stopped, [this] {
    {
      const std::lock_guard lock(impl_->mutex);
      impl_->stopping = true;
    }
    impl_->wake.notify_one();
    impl_->thread.join();
    impl_->flushing_thread.join();
  });
}

}  // namespace waybill::store
