// A bounded queue in front of a thread, for what must never hold up its caller.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <pthread.h>

#include "base/clock.h"

namespace waybill::telemetry {

// What a consumer that waits or tries again must look at.
class StopSignal {
 public:
  // Waits, and says whether to go on: false once stopping has begun.
  bool pause(Duration length) {
    std::unique_lock lock(mutex);
    return !told.wait_for(lock, length, [this] { return stopping; });
  }
  // The end of the time that was given for flushing; far away until stopping has begun.
  [[nodiscard]] TimePoint give_up_at() {
    const std::scoped_lock lock(mutex);
    return deadline;
  }

  std::mutex mutex;  // guards all below, and the queue
  std::condition_variable told;
  bool stopping = false;
  TimePoint deadline = TimePoint::max();
};

template <class T>
class QueueConsumer {
 public:
  virtual ~QueueConsumer() = default;
  // Runs on the queue's thread. What is left in `batch` afterwards is dropped. Must not throw.
  virtual void consume(std::deque<T>& batch, StopSignal& stop) noexcept = 0;
};

struct BackgroundQueueOptions {
  const char* thread_name = "queue";  // 15 characters at most
  std::size_t capacity = 1024;
  std::size_t batch = 1024;  // the consumer gets at most so many at once
  Duration linger{};         // how long the first of a batch waits for company
};

// push() takes a short lock and wakes the thread only for the first of a batch. When stopping takes longer
// than it may, the thread is left behind with its consumer, which it owns: so that a disk or a peer that
// hangs cannot keep the program from ending. Thread-safe.
template <class T>
class BackgroundQueue {
 public:
  using Options = BackgroundQueueOptions;

  BackgroundQueue(const Options& options, std::unique_ptr<QueueConsumer<T>> consumer)
      : shared_(std::make_shared<Shared>(options, std::move(consumer))),
        thread_([shared = shared_] { run(*shared); }) {
    pthread_setname_np(thread_.native_handle(), options.thread_name);
  }
  ~BackgroundQueue() { stop(std::chrono::seconds(1)); }
  BackgroundQueue(const BackgroundQueue&) = delete;
  BackgroundQueue& operator=(const BackgroundQueue&) = delete;

  // False, and counted as dropped, when the queue is full or stopped.
  bool push(T item) {
    Shared& s = *shared_;
    bool wake = false;
    {
      const std::scoped_lock lock(s.signal.mutex);
      if (s.signal.stopping || s.queue.size() >= s.options.capacity) {
        s.dropped.fetch_add(1, std::memory_order_relaxed);
        return false;
      }
      s.queue.push_back(std::move(item));
      wake = s.queue.size() == 1 || s.queue.size() == s.options.batch;
    }
    if (wake) s.signal.told.notify_all();
    return true;
  }

  [[nodiscard]] std::uint64_t dropped() const noexcept {
    return shared_->dropped.load(std::memory_order_relaxed);
  }

  // Takes no more; what is queued is consumed for at most `bound`, then dropped.
  void stop(Duration bound) {
    const std::scoped_lock once(stop_mutex_);
    if (!thread_.joinable()) return;
    Shared& s = *shared_;
    std::unique_lock lock(s.signal.mutex);
    s.signal.stopping = true;
    s.signal.deadline = std::chrono::steady_clock::now() + bound;
    s.signal.told.notify_all();
    const bool ended = s.ended_told.wait_until(lock, s.signal.deadline, [&s] { return s.ended; });
    s.drop_queue();
    if (!ended)
      s.dropped.fetch_add(s.in_hand, std::memory_order_relaxed);  // it may still get some of them done
    lock.unlock();
    if (ended) {
      thread_.join();
    } else {
      thread_.detach();
    }
  }

 private:
  struct Shared {
    Shared(const Options& o, std::unique_ptr<QueueConsumer<T>> c) : options(o), consumer(std::move(c)) {}
    void drop_queue() {
      dropped.fetch_add(queue.size(), std::memory_order_relaxed);
      queue.clear();
    }
    const Options options;
    const std::unique_ptr<QueueConsumer<T>> consumer;
    std::atomic<std::uint64_t> dropped{0};
    StopSignal signal;
    std::condition_variable ended_told;
    std::deque<T> queue;  // these three are guarded by signal.mutex
    std::size_t in_hand = 0;
    bool ended = false;
  };

  static void run(Shared& s) {
    std::deque<T> batch;
    std::unique_lock lock(s.signal.mutex);
    while (true) {
      s.signal.told.wait(lock, [&s] { return s.signal.stopping || !s.queue.empty(); });
      if (s.options.linger > Duration::zero()) {
        s.signal.told.wait_for(lock, s.options.linger,
                               [&s] { return s.signal.stopping || s.queue.size() >= s.options.batch; });
      }
      if (s.queue.empty()) break;  // stopping
      if (s.signal.stopping && std::chrono::steady_clock::now() >= s.signal.deadline) break;
      if (s.queue.size() <= s.options.batch) {
        batch.swap(s.queue);
      } else {
        const auto end = s.queue.begin() + static_cast<std::ptrdiff_t>(s.options.batch);
        batch.assign(std::make_move_iterator(s.queue.begin()), std::make_move_iterator(end));
        s.queue.erase(s.queue.begin(), end);
      }
      s.in_hand = batch.size();
      lock.unlock();
      s.consumer->consume(batch, s.signal);
      batch.clear();
      lock.lock();
      s.in_hand = 0;
    }
    s.drop_queue();
    s.ended = true;
    s.ended_told.notify_all();
  }

  std::shared_ptr<Shared> shared_;  // shared with the thread, which may be left behind
  std::mutex stop_mutex_;
  std::thread thread_;
};

}  // namespace waybill::telemetry
