#include "store/sqlite/checkpointer.h"

#include <algorithm>
#include <utility>

#include <pthread.h>

#include "base/blocked_signals.h"

namespace waybill::store::sqlite {
namespace {

constexpr std::int64_t kPagesOfAPass = 4000;  // fewer are merged again and again, more take longer at a time

}  // namespace

Checkpointer::Checkpointer(std::unique_ptr<Connection> connection, std::int64_t page_bytes,
                           CheckpointerOptions options, std::function<void(const Connection&)> failed)
    : connection_(std::move(connection)),
      page_bytes_(page_bytes),
      options_(options),
      failed_(std::move(failed)),
      wait_from_(static_cast<std::int64_t>(options.max_log_bytes) / page_bytes) {
  if (!options_.own_thread) return;
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

void Checkpointer::grew(std::int64_t pages) {
  if (pages < pages_.load(std::memory_order_relaxed)) merged_ = 0;  // the log has begun anew
  pages_ = pages;
  if (pages - merged_ < kPagesOfAPass) return;
  if (!options_.own_thread) return merge();
  {
    const std::lock_guard lock(mutex_);
    if (asked_ != finished_) return;  // one is under way
    ++asked_;
  }
  wake_.notify_one();
}

void Checkpointer::wait_if_long() {
  const std::int64_t most = static_cast<std::int64_t>(options_.max_log_bytes) / page_bytes_;
  const std::int64_t pages = pages_.load(std::memory_order_relaxed);
  if (pages < most) wait_from_ = most;
  if (pages < wait_from_) return;
  wait_from_ = pages + most / 8;  // a long read holds the log: it does no good to wait for it each time
  if (!options_.own_thread) return merge();
  std::unique_lock lock(mutex_);
  // A pass that is under way has not seen the latest transactions.
  const std::uint64_t wanted = asked_ = std::max(asked_, finished_ + 1) + (asked_ != finished_ ? 1 : 0);
  wake_.notify_one();
  done_.wait(lock, [&] { return finished_ >= wanted || stopping_; });
}

void Checkpointer::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || asked_ != finished_; });
    if (stopping_) return;
    lock.unlock();
    merge();
    lock.lock();
    ++finished_;
    done_.notify_all();
  }
}

void Checkpointer::merge() {
  int pages = 0, merged = 0;
  const int code =
      sqlite3_wal_checkpoint_v2(connection_->handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, &pages, &merged);
  if (code == SQLITE_BUSY) return;  // another process merges
  if (code != SQLITE_OK) {
    connection_->note(code);
    failed_(*connection_);
    connection_->clear();
    return;
  }
  if (merged >= 0) merged_ = merged;
}

std::int64_t Checkpointer::unmerged_bytes() const noexcept {
  return std::max<std::int64_t>(0, pages_ - merged_) * page_bytes_;
}

}  // namespace waybill::store::sqlite
