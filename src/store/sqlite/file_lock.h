// One process at a time has a store open for writing.
#pragma once

#include <filesystem>
#include <utility>

#include "base/result.h"

namespace waybill::store::sqlite {

// flock(2) on a file beside the database: on the database itself it would meet SQLite's own locks. While it
// is held the file holds the id of the process, for the sentence that others get; then it is empty, but for a
// process that was killed.
class FileLock {
 public:
  // kStoreUnavailable where another process has it.
  [[nodiscard]] static Result<FileLock> take(const std::filesystem::path& database);

  FileLock(FileLock&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), after_a_crash_(other.after_a_crash_) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

  // Whoever held it before did not come to release it.
  [[nodiscard]] bool after_a_crash() const noexcept { return after_a_crash_; }

 private:
  explicit FileLock(int descriptor) noexcept : descriptor_(descriptor) {}
  int descriptor_;
  bool after_a_crash_ = false;
};

}  // namespace waybill::store::sqlite
