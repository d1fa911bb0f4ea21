#include "store/sqlite/file_lock.h"

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

namespace waybill::store::sqlite {

Result<FileLock> FileLock::take(const std::filesystem::path& database) {
  const std::string path = database.string() + "-lock";
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    return fail(ErrorCode::kIo,
                fmt::format("cannot write {}: {}", path, std::generic_category().message(errno)));
  }
  char before[32];
  const ssize_t size = ::pread(descriptor, before, sizeof before, 0);
  std::string_view process(before, size > 0 ? static_cast<std::size_t>(size) : 0);
  process = process.substr(0, process.find('\n'));
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    ::close(descriptor);
    return fail(ErrorCode::kStoreUnavailable,
                fmt::format("{} is in use by {}; stop that server, or give each its own store.path",
                            database.string(),
                            process.empty() ? "another process" : fmt::format("process {}", process)));
  }
  FileLock lock(descriptor);
  lock.after_a_crash_ = !process.empty();
  const std::string own = fmt::format("{}\n", ::getpid());
  const bool told = ::ftruncate(descriptor, 0) == 0 &&
                    ::pwrite(descriptor, own.data(), own.size(), 0) == static_cast<ssize_t>(own.size());
  static_cast<void>(told);  // a full disk: the lock holds all the same
  return lock;
}

FileLock::~FileLock() {
  if (descriptor_ < 0) return;
  const bool emptied = ::ftruncate(descriptor_, 0) == 0;
  static_cast<void>(emptied);  // else the next one looks for what a crash leaves, and finds nothing
  ::close(descriptor_);
}

}  // namespace waybill::store::sqlite
