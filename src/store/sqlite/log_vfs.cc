#include "store/sqlite/log_vfs.h"

#include <cstddef>
#include <new>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace waybill::store::sqlite {
namespace {

constexpr std::size_t kMostPending = 96U << 10;  // SQLite's own VFS takes less than 128 KiB in one write
constexpr std::size_t kAlignment = alignof(std::max_align_t);

// The file of the VFS beneath lies behind it.
struct LogFile : sqlite3_file {
  LogVfs* vfs = nullptr;
  std::string pending;     // bytes that are not written yet
  sqlite3_int64 from = 0;  // where they belong
  bool header = false;     // it was written, and not flushed yet
};

constexpr std::size_t kBehind = (sizeof(LogFile) + kAlignment - 1) / kAlignment * kAlignment;

LogFile& log_of(sqlite3_file* file) noexcept { return *static_cast<LogFile*>(file); }
sqlite3_file* beneath(sqlite3_file* file) noexcept {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<std::byte*>(file) + kBehind);
}
sqlite3_vfs* beneath(sqlite3_vfs* vfs) noexcept { return static_cast<LogVfs*>(vfs->pAppData)->beneath(); }

int write_pending(sqlite3_file* file) {
  LogFile& log = log_of(file);
  if (log.pending.empty()) return SQLITE_OK;
  sqlite3_file* to = beneath(file);
  const int code =
      to->pMethods->xWrite(to, log.pending.data(), static_cast<int>(log.pending.size()), log.from);
  log.pending.clear();  // after a failure too: the transaction fails, and its part of the log is void
  return code;
}

int log_write(sqlite3_file* file, const void* data, int size, sqlite3_int64 at) {
  LogFile& log = log_of(file);
  if (at == 0) log.header = true;
  const bool goes_on = at == log.from + static_cast<sqlite3_int64>(log.pending.size());
  if (!goes_on || log.pending.size() + static_cast<std::size_t>(size) > kMostPending) {
    if (const int code = write_pending(file); code != SQLITE_OK) return code;
  }
  if (log.pending.empty()) log.from = at;
  try {
    log.pending.append(static_cast<const char*>(data), static_cast<std::size_t>(size));
  } catch (const std::bad_alloc&) {
    return SQLITE_IOERR_NOMEM;
  }
  return SQLITE_OK;
}

int log_read(sqlite3_file* file, void* data, int size, sqlite3_int64 at) {
  if (const int code = write_pending(file); code != SQLITE_OK) return code;
  return beneath(file)->pMethods->xRead(beneath(file), data, size, at);
}

int log_truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (const int code = write_pending(file); code != SQLITE_OK) return code;
  return beneath(file)->pMethods->xTruncate(beneath(file), size);
}

int log_sync(sqlite3_file* file, int flags) {
  if (const int code = write_pending(file); code != SQLITE_OK) return code;
  LogFile& log = log_of(file);
  if (log.vfs->puts_off() && !log.header) {
    log.vfs->put_off();
    return SQLITE_OK;
  }
  log.header = false;
  return beneath(file)->pMethods->xSync(beneath(file), flags);
}

int log_size(sqlite3_file* file, sqlite3_int64* size) {
  if (const int code = write_pending(file); code != SQLITE_OK) return code;
  return beneath(file)->pMethods->xFileSize(beneath(file), size);
}

// What is pending was never flushed: no transaction needs it.
int log_close(sqlite3_file* file) {
  log_of(file).vfs->opened(nullptr);
  const int code = beneath(file)->pMethods->xClose(beneath(file));
  log_of(file).~LogFile();
  return code;
}

int log_lock(sqlite3_file* file, int level) { return beneath(file)->pMethods->xLock(beneath(file), level); }
int log_unlock(sqlite3_file* file, int level) {
  return beneath(file)->pMethods->xUnlock(beneath(file), level);
}
int log_reserved(sqlite3_file* file, int* reserved) {
  return beneath(file)->pMethods->xCheckReservedLock(beneath(file), reserved);
}
int log_control(sqlite3_file* file, int what, void* argument) {
  return beneath(file)->pMethods->xFileControl(beneath(file), what, argument);
}
int log_sector_size(sqlite3_file* file) { return beneath(file)->pMethods->xSectorSize(beneath(file)); }
int log_device(sqlite3_file* file) { return beneath(file)->pMethods->xDeviceCharacteristics(beneath(file)); }

const sqlite3_io_methods kLogMethods = {
    .iVersion = 1,
    .xClose = log_close,
    .xRead = log_read,
    .xWrite = log_write,
    .xTruncate = log_truncate,
    .xSync = log_sync,
    .xFileSize = log_size,
    .xLock = log_lock,
    .xUnlock = log_unlock,
    .xCheckReservedLock = log_reserved,
    .xFileControl = log_control,
    .xSectorSize = log_sector_size,
    .xDeviceCharacteristics = log_device,
    .xShmMap = nullptr,
    .xShmLock = nullptr,
    .xShmBarrier = nullptr,
    .xShmUnmap = nullptr,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* flags_out) {
  sqlite3_vfs* under = beneath(vfs);
  if ((flags & SQLITE_OPEN_WAL) == 0) return under->xOpen(under, name, file, flags, flags_out);
  LogVfs* self = static_cast<LogVfs*>(vfs->pAppData);
  (new (file) LogFile{})->vfs = self;
  file->pMethods = nullptr;
  beneath(file)->pMethods = nullptr;
  const int code = under->xOpen(under, name, beneath(file), flags, flags_out);
  if (beneath(file)->pMethods != nullptr) {
    file->pMethods = &kLogMethods;  // SQLite closes it, where opening failed too
    if (code == SQLITE_OK) self->opened(file);
  } else {
    log_of(file).~LogFile();
  }
  return code;
}

// The functions of a VFS want the VFS that they are of.
template <auto kMember, class... Arguments>
auto pass_on(sqlite3_vfs* vfs, Arguments... arguments) {
  sqlite3_vfs* under = beneath(vfs);
  return (under->*kMember)(under, arguments...);
}

}  // namespace

LogVfs::LogVfs(const char* beneath) : beneath_(sqlite3_vfs_find(beneath)) {
  sqlite3_vfs* under = beneath_;
  WAYBILL_CHECK(under != nullptr);
  name_ = fmt::format("waybill-log-{}", static_cast<const void*>(this));
  vfs_ = *under;
  vfs_.zName = name_.c_str();
  vfs_.pNext = nullptr;
  vfs_.pAppData = this;
  vfs_.szOsFile = static_cast<int>(kBehind) + under->szOsFile;
  vfs_.xOpen = open;
  vfs_.xDelete = pass_on<&sqlite3_vfs::xDelete>;
  vfs_.xAccess = pass_on<&sqlite3_vfs::xAccess>;
  vfs_.xFullPathname = pass_on<&sqlite3_vfs::xFullPathname>;
  vfs_.xDlOpen = nullptr;
  vfs_.xRandomness = pass_on<&sqlite3_vfs::xRandomness>;
  vfs_.xSleep = pass_on<&sqlite3_vfs::xSleep>;
  vfs_.xCurrentTime = pass_on<&sqlite3_vfs::xCurrentTime>;
  vfs_.xGetLastError = pass_on<&sqlite3_vfs::xGetLastError>;
  if (vfs_.iVersion >= 2 && under->xCurrentTimeInt64 != nullptr)
    vfs_.xCurrentTimeInt64 = pass_on<&sqlite3_vfs::xCurrentTimeInt64>;
  if (vfs_.iVersion > 2) vfs_.iVersion = 2;
  sqlite3_vfs_register(&vfs_, 0);
}

int LogVfs::flush() {
  const std::uint64_t wanted = put_off_;
  if (flushed_ >= wanted) return SQLITE_OK;
  const std::lock_guard lock(flushing_);
  if (flushed_ >= wanted) return SQLITE_OK;
  const std::uint64_t done = put_off_;
  if (sqlite3_file* file = log_) {  // else it is closed, and merged by that
    sqlite3_file* to = waybill::store::sqlite::beneath(file);
    if (const int code = to->pMethods->xSync(to, SQLITE_SYNC_NORMAL); code != SQLITE_OK) return code;
  }
  flushed_ = done;
  return SQLITE_OK;
}

LogVfs::~LogVfs() { sqlite3_vfs_unregister(&vfs_); }

}  // namespace waybill::store::sqlite
