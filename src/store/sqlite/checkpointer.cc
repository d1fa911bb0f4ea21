#include "store/sqlite/checkpointer.h"

#include <algorithm>
#include <utility>

#include <pthread.h>

#include "base/blocked_signals.h"

namespace waybill::store::sqlite {
namespace {

constexpr std::int64_t kPagesOfAPass = 4000;  // fewer are merged again and again, more take longer at a time
constexpr std::int64_t kFewPages = 1000;      // that the writer may wait for

}  // namespace

Checkpointer::Checkpointer(std::unique_ptr<Connection> connection, std::int64_t page_bytes,
                           CheckpointerOptions options, std::function<void(const Connection&)> failed)
    : connection_(std::move(connection)),
      most_pages_(static_cast<std::int64_t>(options.max_log_bytes) / page_bytes),
      long_pages_(most_pages_ / 4),
      page_bytes_(page_bytes),
      own_thread_(options.own_thread),
      failed_(std::move(failed)),
      anew_from_(long_pages_) {
  if (!own_thread_) return;
  const BlockedSignals blocked;  // inherited by the thread
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "checkpoint");
}

Checkpointer::~Checkpointer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::unique_lock<std::mutex> Checkpointer::turn() {
  if (pausing_.load(std::memory_order_acquire)) {
    std::unique_lock lock(mutex_);
    resumed_.wait(lock, [this] { return !pausing_.load(std::memory_order_relaxed); });
  }
  return std::unique_lock(writing_);
}

void Checkpointer::grew(std::int64_t pages) {
  if (pages < pages_.load(std::memory_order_relaxed)) {  // it has begun anew
    merged_ = 0;
    anew_from_ = long_pages_;
  }
  pages_ = pages;
  if (pages - merged_ < kPagesOfAPass && pages < anew_from_) return;
  if (!own_thread_) {
    merge();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (asked_) return;
    asked_ = true;
  }
  wake_.notify_one();
}

void Checkpointer::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || asked_; });
    if (stopping_) return;
    lock.unlock();
    work();
    lock.lock();
    asked_ = false;
  }
}

void Checkpointer::work() {
  if (!merge() || pages_ < anew_from_) return;
  // A pass that leaves something does not flush the database, so that the last one would have to do it all.
  flush();
  if (!merge()) return;
  if (pages_ - merged_ > kFewPages && pages_ < most_pages_) return;  // and again, with the next transaction
  {
    const std::lock_guard lock(mutex_);
    pausing_.store(true, std::memory_order_release);
  }
  {
    const std::lock_guard turn(writing_);
    merge();
    anew_from_ = pages_ + long_pages_;  // where a read keeps it, it does no good to try again soon
  }
  {
    const std::lock_guard lock(mutex_);
    pausing_.store(false, std::memory_order_release);
  }
  resumed_.notify_all();
}

bool Checkpointer::merge() {
  int pages = 0, merged = 0;
  const int code =
      sqlite3_wal_checkpoint_v2(connection_->handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, &pages, &merged);
  if (code == SQLITE_BUSY) return false;  // another process merges
  if (code != SQLITE_OK) {
    connection_->note(code);
    failed_(*connection_);
    connection_->clear();
    return false;
  }
  if (merged >= 0) merged_ = merged;
  return true;
}

// Through SQLite's own file: closing another descriptor of it would drop SQLite's locks.
void Checkpointer::flush() {
  sqlite3_file* file = nullptr;
  if (sqlite3_file_control(connection_->handle(), "main", SQLITE_FCNTL_FILE_POINTER,
                           static_cast<void*>(&file)) != SQLITE_OK)
    return;
  if (file == nullptr || file->pMethods == nullptr) return;
  const int code = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
  if (code == SQLITE_OK) return;
  connection_->note(code);
  failed_(*connection_);
  connection_->clear();
}

std::int64_t Checkpointer::unmerged_bytes() const noexcept {
  return std::max<std::int64_t>(0, pages_ - merged_) * page_bytes_;
}

}  // namespace waybill::store::sqlite
