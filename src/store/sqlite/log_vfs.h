// Writes to SQLite's log in one piece: it writes each page's header and each page by itself, 150 writes for a
// transaction of fifty jobs, one behind the other.
#pragma once

#include <string>

#include <sqlite3.h>

namespace waybill::store::sqlite {

// A VFS that keeps what is written to a log (SQLITE_OPEN_WAL) until it is flushed, read, measured or
// truncated, or does not go on where it ended; the rest is the other VFS's. For one connection that writes
// with synchronous = FULL, so that nobody looks for a transaction before its log was flushed. Registered
// under its name while it lives, which is longer than the connection.
class LogVfs {
 public:
  // `beneath`: the name of the other; null: the system's.
  explicit LogVfs(const char* beneath);
  ~LogVfs();
  LogVfs(const LogVfs&) = delete;
  LogVfs& operator=(const LogVfs&) = delete;

  [[nodiscard]] const char* name() const noexcept { return name_.c_str(); }

 private:
  std::string name_;
  sqlite3_vfs vfs_{};
};

}  // namespace waybill::store::sqlite
