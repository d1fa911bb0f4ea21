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
// own, and the writer goes on beside it. The log begins anew once all of it is merged and nobody reads it,
// which under load does not come to be by itself. So a log that has become long is merged and flushed until
// little is left, and for that little the writer waits: some milliseconds. Only beyond max_log_bytes it waits
// for whatever there is.
class Checkpointer {
 public:
  // `failed` is called with what a checkpoint failed with, on its thread.
  Checkpointer(std::unique_ptr<Connection> connection, std::int64_t page_bytes, CheckpointerOptions options,
               std::function<void(const Connection&)> failed);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // The writer's. It holds its turn during a transaction, and tells then how many pages the log has.
  [[nodiscard]] std::unique_lock<std::mutex> turn();
  void grew(std::int64_t pages);

  // Thread-safe. What is in the log and not in the database.
  [[nodiscard]] std::int64_t unmerged_bytes() const noexcept;

 private:
  void run();
  void work();
  bool merge();
  void flush();

  const std::unique_ptr<Connection> connection_;
  const std::int64_t most_pages_, long_pages_, page_bytes_;
  const bool own_thread_;
  const std::function<void(const Connection&)> failed_;

  std::atomic<std::int64_t> pages_{0}, merged_{0};
  std::atomic<std::int64_t> anew_from_;  // so many pages are a long log; more while a read keeps it

  std::mutex writing_;  // held during a transaction

  std::mutex mutex_;  // guards the next three
  std::condition_variable wake_, resumed_;
  bool stopping_ = false, asked_ = false;
  std::atomic<bool> pausing_{false};  // changed under mutex_
  std::thread thread_;
};

}  // namespace waybill::store::sqlite
