#include "base/worker_pool.h"

#include <limits>
#include <utility>

#include <fmt/format.h>
#include <pthread.h>

#include "base/blocked_signals.h"
#include "base/check.h"

namespace waybill {
namespace {

constexpr int kRemembered = 16;  // about so many pieces of work make the mean

}  // namespace

WorkerPool::WorkerPool(const WorkerPoolOptions& options) : max_waiting_(options.max_waiting) {
  WAYBILL_CHECK(options.threads != 0);
  const BlockedSignals blocked;  // inherited by the threads
  try {
    for (unsigned i = 0; i < options.threads; ++i) {
      threads_.emplace_back([this] { run(); });
      pthread_setname_np(threads_.back().native_handle(), fmt::format("{}-{}", options.name, i).c_str());
    }
  } catch (...) {
    stop();
    throw;
  }
}

WorkerPool::~WorkerPool() { stop(); }

bool WorkerPool::post(Work&& work) { return add(std::move(work), max_waiting_); }

bool WorkerPool::resume(Work&& work) { return add(std::move(work), std::numeric_limits<std::size_t>::max()); }

bool WorkerPool::add(Work&& work, std::size_t bound) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || queue_.size() >= bound) return false;
    queue_.push_back(std::move(work));
  }
  wake_.notify_one();
  return true;
}

void WorkerPool::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Work work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    const TimePoint begun = std::chrono::steady_clock::now();
    work();
    work = nullptr;  // what it holds goes before the lock is taken
    const Duration length = std::chrono::steady_clock::now() - begun;
    lock.lock();
    mean_length_ += (length - mean_length_) / kRemembered;
  }
}

void WorkerPool::stop() {
  std::call_once(stopped_, [this] {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  });
}

Duration WorkerPool::predicted_wait() const {
  const std::lock_guard lock(mutex_);
  return mean_length_ * static_cast<std::int64_t>(queue_.size() + 1) /
         static_cast<std::int64_t>(threads_.size());
}

std::size_t WorkerPool::waiting() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

}  // namespace waybill
