// The store in one SQLite file. docs/store.md tells its tables and what is durable when.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"
#include "store/store.h"

namespace waybill::store::sqlite {

struct SqliteOptions {
  // Its log (-wal, -shm), its lock (-lock) and its large bodies (-blobs) lie beside it.
  std::filesystem::path path;
  std::size_t inline_bytes = 64U << 10;    // bodies and results that are larger are files of their own
  std::size_t max_log_bytes = 256U << 20;  // of the write-ahead log, before the writer waits for a checkpoint
  std::size_t recent_keys = 64U << 10;     // idempotency keys that are gathered before they get their places
  std::size_t readers = 8;                 // reads at a time; more wait for one of them
  // For tests: the file system that SQLite sees, and checkpoints within commit() in place of a thread of
  // theirs.
  std::string vfs;
  bool checkpoint_thread = true;
};

// Makes the file where there is none, and brings an older one up to date. Fails with a sentence that says
// what to do: kStoreUnavailable (another process has it), kUnsupported (of a newer version), kCorrupt (not a
// store), kIo.
[[nodiscard]] Result<std::unique_ptr<Store>> open_sqlite_store(const SqliteOptions& options);

}  // namespace waybill::store::sqlite
