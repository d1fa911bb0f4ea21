#include "store/sqlite/schema.h"

#include <array>
#include <iterator>
#include <string>

#include <fmt/format.h>

namespace waybill::store::sqlite {
namespace {

// From one version to the next; a step is never changed once it has been released. docs/store.md tells what
// the tables hold. The numbers in the indexes are stored_state() of queued, held, failed, cancelled, expired,
// dead.
constexpr std::array<const char*, kSchemaVersion> kSteps = {R"(
CREATE TABLE names (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);
CREATE TABLE jobs (
  key INTEGER PRIMARY KEY,
  low INTEGER NOT NULL,
  queue INTEGER NOT NULL,
  caller INTEGER NOT NULL,
  state INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  due INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  claimed INTEGER NOT NULL,
  finished INTEGER NOT NULL,
  result INTEGER NOT NULL,
  receives INTEGER NOT NULL,
  max_receives INTEGER NOT NULL,
  in_doubt INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  flags INTEGER NOT NULL,
  owner INTEGER NOT NULL
);
CREATE INDEX jobs_ready ON jobs (queue, caller, priority DESC) WHERE state = 2;
CREATE INDEX jobs_due ON jobs (due) WHERE due > 0;
CREATE INDEX jobs_unfulfilled ON jobs (state) WHERE state IN (5, 7, 8, 9, 10);
CREATE TABLE requests (
  key INTEGER PRIMARY KEY,
  created INTEGER NOT NULL,
  run_after INTEGER NOT NULL,
  endpoint INTEGER NOT NULL,
  attributes TEXT,
  metadata TEXT,
  webhook TEXT,
  blob BLOB,
  body BLOB
);
CREATE TABLE endings (
  number INTEGER PRIMARY KEY,
  key INTEGER NOT NULL,
  low INTEGER NOT NULL,
  queue INTEGER NOT NULL,
  caller INTEGER NOT NULL,
  state INTEGER NOT NULL,
  ended INTEGER NOT NULL
);
CREATE TABLE results (
  number INTEGER PRIMARY KEY,
  status INTEGER NOT NULL,
  content_type TEXT,
  facts TEXT,
  blob BLOB,
  body BLOB
);
CREATE TABLE errors (
  key INTEGER NOT NULL,
  number INTEGER NOT NULL,
  receive INTEGER NOT NULL,
  started INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  code TEXT NOT NULL,
  message TEXT NOT NULL,
  status INTEGER NOT NULL,
  in_doubt INTEGER NOT NULL,
  PRIMARY KEY (key, number)
) WITHOUT ROWID;
CREATE TABLE events (
  id INTEGER PRIMARY KEY,
  key INTEGER NOT NULL,
  start INTEGER NOT NULL,
  size INTEGER NOT NULL,
  text BLOB NOT NULL
);
CREATE INDEX events_of_job ON events (key, start);
CREATE TABLE keys (
  slot INTEGER PRIMARY KEY,
  high INTEGER NOT NULL,
  payload_low INTEGER NOT NULL,
  payload_high INTEGER NOT NULL,
  job INTEGER NOT NULL,
  until INTEGER NOT NULL
);
CREATE TABLE deliveries (
  id INTEGER PRIMARY KEY,
  job INTEGER NOT NULL,
  url TEXT NOT NULL,
  state INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  created INTEGER NOT NULL,
  due INTEGER NOT NULL,
  status INTEGER NOT NULL,
  error TEXT NOT NULL
);
CREATE INDEX deliveries_due ON deliveries (due) WHERE state = 0;
CREATE INDEX deliveries_dead ON deliveries (state) WHERE state = 2;
CREATE INDEX deliveries_of_job ON deliveries (job);
CREATE TABLE disabled_urls (url TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE paused_queues (queue INTEGER PRIMARY KEY);
CREATE TABLE blobs (
  hash BLOB PRIMARY KEY,
  bytes INTEGER NOT NULL,
  uses INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE depths (
  queue INTEGER NOT NULL,
  caller INTEGER NOT NULL,
  state INTEGER NOT NULL,
  jobs INTEGER NOT NULL,
  PRIMARY KEY (queue, caller, state)
) WITHOUT ROWID;
CREATE TABLE counters (
  id INTEGER PRIMARY KEY,
  value INTEGER NOT NULL
);
)",
                                                            R"(
CREATE TABLE facts (
  name TEXT PRIMARY KEY,
  text TEXT NOT NULL
) WITHOUT ROWID;
)",
                                                            R"(
CREATE TABLE recent_keys_0 (
  id INTEGER PRIMARY KEY,
  low INTEGER NOT NULL,
  high INTEGER NOT NULL,
  payload_low INTEGER NOT NULL,
  payload_high INTEGER NOT NULL,
  job INTEGER NOT NULL,
  until INTEGER NOT NULL
);
CREATE TABLE recent_keys_1 (
  id INTEGER PRIMARY KEY,
  low INTEGER NOT NULL,
  high INTEGER NOT NULL,
  payload_low INTEGER NOT NULL,
  payload_high INTEGER NOT NULL,
  job INTEGER NOT NULL,
  until INTEGER NOT NULL
);
)"};

std::unexpected<Error> foreign(const std::filesystem::path& path) {
  return fail(
      ErrorCode::kCorrupt,
      fmt::format("{} is not a store of Waybill's; give store.path another name, or move that file away",
                  path.string()));
}

}  // namespace

Result<std::int64_t> version_of(Connection& connection, const std::filesystem::path& path) {
  const std::int64_t application = connection.number("PRAGMA application_id");
  const std::int64_t version = connection.number("PRAGMA user_version");
  const std::int64_t tables = connection.number("SELECT count(*) FROM sqlite_schema");
  if ((connection.code() & 0xFF) == SQLITE_NOTADB) return foreign(path);
  if (connection.failed()) return std::unexpected(error_of(connection, "read", path));
  if (application == 0 && version == 0 && tables == 0) return 0;
  if (application != kApplicationId || version == 0) return foreign(path);
  if (version > kSchemaVersion) {
    return fail(
        ErrorCode::kUnsupported,
        fmt::format("{} was written by a newer Waybill (format {}, this one knows {}); run that version, or "
                    "give store.path another name",
                    path.string(), version, kSchemaVersion));
  }
  return version;
}

Status migrate(Connection& connection, const std::filesystem::path& path, std::int64_t version) {
  for (std::int64_t step = version; step < kSchemaVersion; ++step) {
    connection.execute("BEGIN IMMEDIATE");
    connection.execute(kSteps[static_cast<std::size_t>(step)]);
    connection.execute(fmt::format("PRAGMA application_id = {}", kApplicationId).c_str());
    connection.execute(fmt::format("PRAGMA user_version = {}", step + 1).c_str());
    connection.execute("COMMIT");
    if (connection.failed()) return std::unexpected(error_of(connection, "write to", path));
  }
  return {};
}

Status check_version(Connection& connection, const std::filesystem::path& path) {
  const Result<std::int64_t> version = version_of(connection, path);
  if (!version) return std::unexpected(version.error());
  if (*version == 0) return foreign(path);
  if (*version < kSchemaVersion) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("{} has the older format {}; `waybill serve` brings it up to date", path.string(),
                            *version));
  }
  return {};
}

}  // namespace waybill::store::sqlite
