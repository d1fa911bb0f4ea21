#include "store/sqlite/fault_vfs_test.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace waybill::store::sqlite {
namespace {

using File = FaultyDisk::File;

constexpr std::size_t kSector = 512;

// What SQLite allocates for a file of ours.
struct OpenFile {
  sqlite3_file base;
  FaultyDisk* disk;
  std::shared_ptr<File> file;
  int lock;
  std::array<bool, SQLITE_SHM_NLOCK> reads, writes;
};

OpenFile& of(sqlite3_file* file) { return *reinterpret_cast<OpenFile*>(file); }
FaultyDisk& disk_of(sqlite3_vfs* vfs) { return *static_cast<FaultyDisk*>(vfs->pAppData); }
sqlite3_vfs& system_vfs() { return *sqlite3_vfs_find(nullptr); }

void apply(std::string& content, const FaultyDisk::Change& change, std::size_t bytes) {
  if (change.truncates) {
    content.resize(change.offset);
    return;
  }
  if (content.size() < change.offset + bytes) content.resize(change.offset + bytes);
  std::memcpy(content.data() + change.offset, change.bytes.data(), bytes);
}

int x_close(sqlite3_file* file) {
  of(file).file->shared -= of(file).lock >= SQLITE_LOCK_SHARED ? 1 : 0;
  of(file).~OpenFile();
  return SQLITE_OK;
}

int x_read(sqlite3_file* file, void* to, int bytes, sqlite3_int64 offset) {
  if (of(file).disk->is_off()) return SQLITE_IOERR_READ;
  const std::string& content = of(file).file->seen;
  const auto at = static_cast<std::size_t>(offset), wanted = static_cast<std::size_t>(bytes);
  const std::size_t there = at >= content.size() ? 0 : std::min(wanted, content.size() - at);
  std::memcpy(to, content.data() + std::min(at, content.size()), there);
  if (there == wanted) return SQLITE_OK;
  std::memset(static_cast<char*>(to) + there, 0, wanted - there);
  return SQLITE_IOERR_SHORT_READ;
}

int x_write(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset) {
  return of(file).disk->write(*of(file).file, static_cast<std::size_t>(offset),
                              std::string(static_cast<const char*>(from), static_cast<std::size_t>(bytes)));
}

int x_truncate(sqlite3_file* file, sqlite3_int64 size) {
  return of(file).disk->truncate(*of(file).file, static_cast<std::size_t>(size));
}

int x_sync(sqlite3_file* file, int) { return of(file).disk->flush(*of(file).file); }

int x_file_size(sqlite3_file* file, sqlite3_int64* size) {
  *size = static_cast<sqlite3_int64>(of(file).file->seen.size());
  return SQLITE_OK;
}

int x_lock(sqlite3_file* handle, int level) {
  OpenFile& own = of(handle);
  File& file = *own.file;
  if (own.lock >= level) return SQLITE_OK;
  if (level == SQLITE_LOCK_SHARED) {
    if (file.pending || file.exclusive) return SQLITE_BUSY;
    ++file.shared;
  } else if (level == SQLITE_LOCK_RESERVED) {
    if (file.reserved) return SQLITE_BUSY;
    file.reserved = true;
  } else {
    if (file.shared > 1) return SQLITE_BUSY;
    file.exclusive = true;
  }
  own.lock = level;
  return SQLITE_OK;
}

int x_unlock(sqlite3_file* handle, int level) {
  OpenFile& own = of(handle);
  File& file = *own.file;
  if (own.lock <= level) return SQLITE_OK;
  if (own.lock >= SQLITE_LOCK_RESERVED) file.reserved = file.pending = file.exclusive = false;
  if (level == SQLITE_LOCK_NONE) --file.shared;
  own.lock = level;
  return SQLITE_OK;
}

int x_check_reserved(sqlite3_file* file, int* reserved) {
  *reserved = of(file).file->reserved ? 1 : 0;
  return SQLITE_OK;
}

int x_file_control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int x_sector_size(sqlite3_file*) { return 4096; }
int x_characteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

int x_shm_map(sqlite3_file* handle, int region, int bytes, int extend, void volatile** memory) {
  File& file = *of(handle).file;
  const auto at = static_cast<std::size_t>(region);
  *memory = nullptr;
  if (bytes != 32768) return SQLITE_IOERR_SHMMAP;
  if (at >= file.memory.size() && extend == 0) return SQLITE_OK;
  while (file.memory.size() <= at) file.memory.push_back(std::make_unique<std::array<char, 32768>>());
  *memory = file.memory[at]->data();
  return SQLITE_OK;
}

int x_shm_lock(sqlite3_file* handle, int first, int count, int flags) {
  OpenFile& own = of(handle);
  File& file = *own.file;
  const auto begin = static_cast<std::size_t>(first), end = begin + static_cast<std::size_t>(count);
  const bool shared = (flags & SQLITE_SHM_SHARED) != 0;
  if ((flags & SQLITE_SHM_UNLOCK) != 0) {
    for (std::size_t i = begin; i < end; ++i) {
      if (shared && std::exchange(own.reads[i], false)) --file.readers[i];
      if (!shared && std::exchange(own.writes[i], false)) file.writers[i] = false;
    }
    return SQLITE_OK;
  }
  for (std::size_t i = begin; i < end; ++i) {
    if (shared ? own.reads[i] : own.writes[i]) continue;
    if (file.writers[i] || (!shared && file.readers[i] > (own.reads[i] ? 1 : 0))) return SQLITE_BUSY;
  }
  for (std::size_t i = begin; i < end; ++i) {
    if (shared && !std::exchange(own.reads[i], true)) ++file.readers[i];
    if (!shared) own.writes[i] = file.writers[i] = true;
  }
  return SQLITE_OK;
}

void x_shm_barrier(sqlite3_file*) {}

int x_shm_unmap(sqlite3_file* handle, int remove) {
  File& file = *of(handle).file;
  for (std::size_t i = 0; i < SQLITE_SHM_NLOCK; ++i) {
    if (std::exchange(of(handle).reads[i], false)) --file.readers[i];
    if (std::exchange(of(handle).writes[i], false)) file.writers[i] = false;
  }
  if (remove != 0) file.memory.clear();
  return SQLITE_OK;
}

const sqlite3_io_methods kMethods = {2,
                                     x_close,
                                     x_read,
                                     x_write,
                                     x_truncate,
                                     x_sync,
                                     x_file_size,
                                     x_lock,
                                     x_unlock,
                                     x_check_reserved,
                                     x_file_control,
                                     x_sector_size,
                                     x_characteristics,
                                     x_shm_map,
                                     x_shm_lock,
                                     x_shm_barrier,
                                     x_shm_unmap,
                                     nullptr,
                                     nullptr};

int x_open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  if (path == nullptr) return SQLITE_CANTOPEN;  // temporary files stay in memory
  std::shared_ptr<File> found = disk_of(vfs).open(path, (flags & SQLITE_OPEN_CREATE) != 0);
  if (!found) return SQLITE_CANTOPEN;
  new (file) OpenFile{{&kMethods}, &disk_of(vfs), std::move(found), SQLITE_LOCK_NONE, {}, {}};
  if (out_flags != nullptr) *out_flags = flags;
  return SQLITE_OK;
}

int x_delete(sqlite3_vfs* vfs, const char* path, int) {
  if (disk_of(vfs).is_off()) return SQLITE_IOERR_DELETE;
  disk_of(vfs).remove(path);
  return SQLITE_OK;
}

int x_access(sqlite3_vfs* vfs, const char* path, int, int* result) {
  *result = disk_of(vfs).exists(path) ? 1 : 0;
  return SQLITE_OK;
}

int x_full_pathname(sqlite3_vfs*, const char* path, int size, char* out) {
  sqlite3_snprintf(size, out, "%s", path);
  return SQLITE_OK;
}

int x_randomness(sqlite3_vfs*, int bytes, char* out) {
  return system_vfs().xRandomness(&system_vfs(), bytes, out);
}
int x_sleep(sqlite3_vfs*, int microseconds) { return microseconds; }
int x_current_time(sqlite3_vfs*, double* days) { return system_vfs().xCurrentTime(&system_vfs(), days); }
int x_last_error(sqlite3_vfs*, int, char*) { return 0; }

}  // namespace

FaultyDisk::FaultyDisk(std::string name) : name_(std::move(name)) {
  vfs_.iVersion = 1;
  vfs_.szOsFile = sizeof(OpenFile);
  vfs_.mxPathname = 1024;
  vfs_.zName = name_.c_str();
  vfs_.pAppData = this;
  vfs_.xOpen = x_open;
  vfs_.xDelete = x_delete;
  vfs_.xAccess = x_access;
  vfs_.xFullPathname = x_full_pathname;
  vfs_.xRandomness = x_randomness;
  vfs_.xSleep = x_sleep;
  vfs_.xCurrentTime = x_current_time;
  vfs_.xGetLastError = x_last_error;
  sqlite3_vfs_register(&vfs_, 0);
}

FaultyDisk::~FaultyDisk() { sqlite3_vfs_unregister(&vfs_); }

std::shared_ptr<File> FaultyDisk::open(const std::string& path, bool create) {
  if (off_) return nullptr;
  const auto found = files_.find(path);
  if (found != files_.end()) return found->second;
  if (!create) return nullptr;
  return files_.emplace(path, std::make_shared<File>()).first->second;
}

bool FaultyDisk::power_fails() {
  if (changes_ == cut_at_) off_ = true;
  ++changes_;
  return off_;
}

int FaultyDisk::write(File& file, std::size_t offset, const std::string& bytes) {
  const std::uint64_t number = changes_;
  Change change{offset, bytes, false};
  const bool fails = power_fails();
  if (fails && number == cut_at_) file.unflushed.push_back(change);  // it was on its way
  if (fails) return SQLITE_IOERR_WRITE;
  if (number >= full_from_) return SQLITE_FULL;
  if (number == bad_write_at_) change.bytes.resize(bytes.size() / 2);
  apply(file.seen, change, change.bytes.size());
  file.unflushed.push_back(std::move(change));
  return number == bad_write_at_ ? SQLITE_IOERR_WRITE : SQLITE_OK;
}

int FaultyDisk::truncate(File& file, std::size_t size) {
  if (power_fails()) return SQLITE_IOERR_TRUNCATE;
  if (size > file.seen.size()) return SQLITE_OK;
  Change change{size, {}, true};
  apply(file.seen, change, 0);
  file.unflushed.push_back(std::move(change));
  return SQLITE_OK;
}

int FaultyDisk::flush(File& file) {
  const std::uint64_t number = changes_;
  if (power_fails()) return SQLITE_IOERR_FSYNC;
  if (number == bad_flush_at_) {
    file.unflushed.clear();  // the system holds these pages for clean from now on
    return SQLITE_IOERR_FSYNC;
  }
  for (const Change& change : file.unflushed) apply(file.flushed, change, change.bytes.size());
  file.unflushed.clear();
  return SQLITE_OK;
}

void FaultyDisk::restart(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (auto& [path, file] : files_) {
    std::string content = file->flushed;
    for (const Change& change : file->unflushed) {
      const std::uint64_t fate = random() % 3;
      if (fate == 0) continue;
      std::size_t bytes = change.bytes.size();
      if (fate == 1 && bytes > kSector) bytes = random() % (bytes / kSector) * kSector;  // torn
      apply(content, change, bytes);
    }
    file = std::make_shared<File>();  // connections of before keep theirs
    file->seen = file->flushed = std::move(content);
  }
  cut_at_ = full_from_ = bad_flush_at_ = bad_write_at_ = kNever;
  off_ = false;
}

}  // namespace waybill::store::sqlite
