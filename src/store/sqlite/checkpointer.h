// Merges the write-ahead log into the database, at the side.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "store/sqlite/connection.h"

namespace waybill::store::sqlite {

struct CheckpointerOptions {
  std::size_t max_log_bytes = 256U << 20;
  bool own_thread = true;  // false: within grew(), for tests that want one order of events
};

// A checkpoint in the writer's path is the longest wait of all, so it has a thread and a connection of its
// own. It never keeps the writer from writing; once all is merged and nobody reads the log, the next
// transaction begins the log anew. Under a load that never pauses that does not come to be: beyond
// max_log_bytes the writer waits once.
class Checkpointer {
 public:
  // `failed` is called with what a checkpoint failed with, on its thread.
  Checkpointer(std::unique_ptr<Connection> connection, std::int64_t page_bytes, CheckpointerOptions options,
               std::function<void(const Connection&)> failed);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // The writer's: after a transaction, the pages in the log; and before one, where it has to wait.
  void grew(std::int64_t pages);
  void wait_if_long();

  // Thread-safe. What is in the log and not in the database.
  [[nodiscard]] std::int64_t unmerged_bytes() const noexcept;

 private:
  void run();
  void merge();

  const std::unique_ptr<Connection> connection_;
  const std::int64_t page_bytes_;
  const CheckpointerOptions options_;
  const std::function<void(const Connection&)> failed_;

  std::atomic<std::int64_t> pages_{0}, merged_{0};
  std::int64_t wait_from_;  // the writer's: pages

  std::mutex mutex_;  // guards the next four
  std::condition_variable wake_, done_;
  bool stopping_ = false;
  std::uint64_t asked_ = 0, finished_ = 0;  // passes
  std::thread thread_;
};

}  // namespace waybill::store::sqlite
