// Writes to SQLite's log in one piece, and flushes of it beside the next transaction. By itself SQLite writes
// each page's header and each page, 150 writes for a transaction of fifty jobs, and waits for the disk in
// each commit.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include <sqlite3.h>

namespace waybill::store::sqlite {

// A VFS that keeps what is written to a log (SQLITE_OPEN_WAL) until it is flushed, read, measured or
// truncated, or does not go on where it ended; the rest is the other VFS's. For one connection that writes
// with synchronous = FULL, so that nobody looks for a transaction before its log was flushed.
//
// While flushes are put off, those of a commit write what is pending and leave the rest to flush(). Not so
// the flush of a log's header: when a log begins anew, frames of the one before that lie on the disk beside
// new ones must not be taken for its own.
//
// Registered under its name while it lives, which is longer than the connection.
class LogVfs {
 public:
  // `beneath`: the name of the other; null: the system's.
  explicit LogVfs(const char* beneath);
  ~LogVfs();
  LogVfs(const LogVfs&) = delete;
  LogVfs& operator=(const LogVfs&) = delete;

  [[nodiscard]] const char* name() const noexcept { return name_.c_str(); }

  // On the thread of the connection; around what commits.
  void put_off_flushes(bool off) noexcept { off_ = off; }
  // What was put off before; returns SQLite's code. Thread-safe; who comes while another flushes what he
  // needs waits for that.
  [[nodiscard]] int flush();

  // For the functions of the VFS.
  [[nodiscard]] sqlite3_vfs* beneath() const noexcept { return beneath_; }
  [[nodiscard]] bool puts_off() const noexcept { return off_; }
  void opened(sqlite3_file* log) noexcept { log_ = log; }
  void put_off() noexcept { put_off_.fetch_add(1); }

 private:
  std::string name_;
  sqlite3_vfs* beneath_ = nullptr;
  bool off_ = false;
  std::atomic<sqlite3_file*> log_{nullptr};
  std::atomic<std::uint64_t> put_off_{0}, flushed_{0};  // flushes: so many were put off, so many of them done
  std::mutex flushing_;
  sqlite3_vfs vfs_{};
};

}  // namespace waybill::store::sqlite
