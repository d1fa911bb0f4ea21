#include "store/sqlite/maintenance.h"

#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "store/sqlite/blobs.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/counters.h"
#include "store/sqlite/file_lock.h"
#include "store/sqlite/open_store.h"
#include "store/sqlite/reads.h"
#include "store/sqlite/schema.h"

namespace waybill::store::sqlite {

namespace fs = std::filesystem;

Result<std::unique_ptr<Connection>> open_existing(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    return fail(ErrorCode::kNotFound, fmt::format("there is no store at {}", path.string()));
  }
  auto connection = Connection::open(path, SQLITE_OPEN_READWRITE, nullptr);
  if (!connection) return connection;
  if (const Status known = check_version(**connection, path); !known) return std::unexpected(known.error());
  return connection;
}

Result<StoreOverview> look_at_store(const fs::path& path) {
  auto connection = open_existing(path);
  if (!connection) return std::unexpected(std::move(connection.error()));
  Reader reader(std::move(*connection));
  reader.connection().execute("BEGIN");
  StoreOverview overview{read_stats(reader), read_queues(reader), read_depths(reader)};
  reader.connection().execute("COMMIT");
  if (reader.connection().failed()) return std::unexpected(error_of(reader.connection(), "read from", path));
  std::error_code ignored;
  const std::uintmax_t log = fs::file_size(path.string() + "-wal", ignored);
  if (!ignored) overview.stats.log_bytes = log;
  return overview;
}

Result<StoreVacuum> vacuum_store(const fs::path& path, const Progress& progress) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    return fail(ErrorCode::kNotFound, fmt::format("there is no store at {}", path.string()));
  }
  const Result<FileLock> lock = FileLock::take(path);
  if (!lock) return std::unexpected(lock.error());
  auto opened = open_existing(path);
  if (!opened) return std::unexpected(std::move(opened.error()));
  Connection& connection = **opened;
  constexpr std::size_t kSteps = 3;
  StoreVacuum done;
  const auto bytes = [&connection] {
    return static_cast<std::uint64_t>(connection.number("PRAGMA page_count") *
                                      connection.number("PRAGMA page_size"));
  };
  done.bytes_before = bytes();
  report(progress, "removing files that no job names", 0, kSteps);
  const BlobFiles files(path);
  Counters counters(connection);
  Blobs blobs(connection, counters, files, 0);
  done.files_removed = blobs.collect();
  report(progress, "writing the database anew", 1, kSteps);
  connection.execute("PRAGMA synchronous = FULL");
  connection.execute("VACUUM");
  report(progress, "merging the log", 2, kSteps);
  connection.execute("PRAGMA wal_checkpoint(TRUNCATE)");
  done.bytes_after = bytes();
  if (connection.failed()) return std::unexpected(error_of(connection, "write to", path));
  return done;
}

}  // namespace waybill::store::sqlite
