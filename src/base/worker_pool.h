// A few threads with a name and a bounded queue, for work that must not run on the thread that asks for it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace waybill {

struct WorkerPoolOptions {
  std::string name = "worker";  // the threads are called name-0, name-1, ...; at most 13 bytes
  unsigned threads = 1;
  std::size_t max_waiting = 1024;  // the bound of the queue
};

// First in, first out. Thread-safe. Work must not throw.
class WorkerPool {
 public:
  using Work = std::move_only_function<void()>;

  // Throws only what starting a thread throws.
  explicit WorkerPool(const WorkerPoolOptions& options);
  ~WorkerPool();  // stop()
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // False when the queue is full or the pool stops; `work` is then as it was.
  [[nodiscard]] bool post(Work&& work);
  // For work that goes on with what has been accepted before: the bound does not hold, so whoever uses it
  // bounds how many such pieces there are. False when the pool stops.
  [[nodiscard]] bool resume(Work&& work);

  // Takes no more, runs what is waiting, ends the threads. Not to be called by work.
  void stop();

  [[nodiscard]] std::size_t waiting() const;
  // How long work that came now would wait for its turn, if what waits takes as long as work of late did.
  [[nodiscard]] Duration predicted_wait() const;

 private:
  [[nodiscard]] bool add(Work&& work, std::size_t bound);
  void run();

  const std::size_t max_waiting_;
  mutable std::mutex mutex_;  // guards the next four
  std::condition_variable wake_;
  std::deque<Work> queue_;
  Duration mean_length_{};  // of one piece of work, the latest counting most
  bool stopping_ = false;
  std::once_flag stopped_;
  std::vector<std::thread> threads_;
};

}  // namespace waybill
