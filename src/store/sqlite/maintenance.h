// What is done to a store from outside: looked at, checked, copied, made smaller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "store/store.h"

namespace waybill::store::sqlite {

// All but vacuum_store() may run while a server uses the store: they see one moment of it. Each fails with
// kNotFound where there is no store.

struct StoreOverview {
  StoreStats stats;
  std::vector<QueueState> queues;
  std::vector<Depth> depths;
};
[[nodiscard]] Result<StoreOverview> look_at_store(const std::filesystem::path& path);

struct StoreCheck {
  std::vector<std::string> problems;  // sentences; none: all is well
  std::uint64_t jobs = 0, blobs = 0;
};
// The database's own structure, that its tables agree with each other, its counters with a recount, and that
// every large body is there and holds what its name says.
[[nodiscard]] Result<StoreCheck> check_store(const std::filesystem::path& path, const Progress& progress);

struct StoreBackup {
  std::uint64_t bytes = 0, blobs = 0;
  std::uint64_t gone = 0;  // large bodies of jobs that were removed meanwhile
};
// A store of its own at `target`, which must not exist; it appears when it is whole and on disk.
[[nodiscard]] Result<StoreBackup> back_up_store(const std::filesystem::path& path,
                                                const std::filesystem::path& target,
                                                const Progress& progress);

struct StoreVacuum {
  std::uint64_t bytes_before = 0, bytes_after = 0;
  std::uint64_t files_removed = 0;  // that no job names
};
// Writes the database anew without what is free in it. kStoreUnavailable while a server uses it.
[[nodiscard]] Result<StoreVacuum> vacuum_store(const std::filesystem::path& path, const Progress& progress);

}  // namespace waybill::store::sqlite
