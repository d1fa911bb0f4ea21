// Counts the work that is under way, so that what it uses can end after it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace waybill {

// Work enters before it begins and leaves when it will not touch what the gate guards again. Thread-safe.
class Gate {
 public:
  // False once the gate is closed: the work must not begin.
  [[nodiscard]] bool enter() {
    const std::lock_guard lock(mutex_);
    if (closed_.load(std::memory_order_relaxed)) return false;
    ++inside_;
    return true;
  }

  void leave() noexcept {
    const std::lock_guard lock(mutex_);
    if (--inside_ == 0) empty_.notify_all();  // under the lock: whoever waits destroys the gate
  }

  void close() {
    const std::lock_guard lock(mutex_);
    closed_.store(true, std::memory_order_release);
  }
  [[nodiscard]] bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }

  // Returns when all have left. Close it before, or others may come in meanwhile.
  void wait() {
    std::unique_lock lock(mutex_);
    empty_.wait(lock, [this] { return inside_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable empty_;
  std::size_t inside_ = 0;           // guarded by mutex_
  std::atomic<bool> closed_{false};  // written under mutex_
};

}  // namespace waybill
