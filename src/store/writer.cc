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
    pthread_setname_np(thread.native_handle(), "store");
  }

  void run();
  void commit(std::span<Command> commands, std::span<Waiter> waiters);
  void probe();
  void tell(std::span<Waiter> waiters, Result<Committed> committed);
  [[nodiscard]] Error overloaded() const;  // under the lock

  Store& store;
  WriterOptions options;

  mutable std::mutex mutex;  // guards the next six
  std::condition_variable wake;
  std::vector<Command> commands;
  std::vector<Waiter> waiters;
  std::size_t committing = 0;  // taken from the two, and not answered yet
  Duration mean_of_command{};
  bool stopping = false;

  std::atomic<bool> writable{true};
  std::once_flag stopped;
  std::thread thread;
};

void Writer::Impl::run() {
  std::vector<Command> taken;
  std::vector<Waiter> taken_waiters;
  std::unique_lock lock(mutex);
  for (;;) {
    const auto awaited = [this] { return stopping || !commands.empty(); };
    if (writable.load(std::memory_order_relaxed)) {
      wake.wait(lock, awaited);
    } else if (!wake.wait_for(lock, kProbe, awaited)) {
      lock.unlock();
      probe();
      lock.lock();
      continue;
    }
    if (commands.empty()) return;
    taken.swap(commands);
    taken_waiters.swap(waiters);
    committing = taken.size();
    lock.unlock();
    const std::size_t total = taken.size();
    const TimePoint begun = std::chrono::steady_clock::now();
    for (std::size_t first = 0; first < total; first += options.max_batch) {
      const std::size_t count = std::min(options.max_batch, total - first);
      commit(std::span(taken).subspan(first, count), std::span(taken_waiters).subspan(first, count));
      const std::lock_guard relock(mutex);
      committing -= count;
    }
    const Duration length = std::chrono::steady_clock::now() - begun;
    taken.clear();
    taken_waiters.clear();
    lock.lock();
    mean_of_command += (length / static_cast<std::int64_t>(total) - mean_of_command) / kRemembered;
  }
}

void Writer::Impl::commit(std::span<Command> batch, std::span<Waiter> batch_waiters) {
  const TimePoint begun = std::chrono::steady_clock::now();
  Result<Committed> committed = store.commit(batch, options.now());
  if (!committed) {
    if (committed.error().code == ErrorCode::kStoreUnavailable) writable = false;
    return tell(batch_waiters, std::move(committed));
  }
  if (committed->wrote) writable = true;
  if (committed->wrote && options.on_commit)
    options.on_commit(batch.size(), std::chrono::steady_clock::now() - begun);
  if (options.on_changes && !committed->changes.empty()) options.on_changes(committed->changes);
  tell(batch_waiters, std::move(committed));
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
      std::max(kSoonest, mean_of_command * static_cast<std::int64_t>(commands.size() + committing));
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
    } else if (impl_->commands.size() + impl_->committing >= impl_->options.max_waiting) {
      refused = impl_->overloaded();
    } else {
      impl_->commands.push_back(std::move(command));
      impl_->waiters.push_back({&executor, std::move(done)});
    }
  }
  if (!refused) return impl_->wake.notify_one();
  executor.post([done = std::move(done), error = std::move(*refused)]() mutable {
    done(std::unexpected(std::move(error)));
  });
}

bool Writer::is_writable() const noexcept { return impl_->writable.load(std::memory_order_relaxed); }

std::size_t Writer::waiting() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->commands.size() + impl_->committing;
}

void Writer::stop() {
  std::call_once(impl_->stopped, [this] {
    {
      const std::lock_guard lock(impl_->mutex);
      impl_->stopping = true;
    }
    impl_->wake.notify_one();
    impl_->thread.join();
  });
}

}  // namespace waybill::store
