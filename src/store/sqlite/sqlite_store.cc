#include "store/sqlite/sqlite_store.h"

#include <atomic>
#include <mutex>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "store/sqlite/blob_files.h"
#include "store/sqlite/checkpointer.h"
#include "store/sqlite/commands.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/file_lock.h"
#include "store/sqlite/log_vfs.h"
#include "store/sqlite/opened_files.h"
#include "store/sqlite/readers.h"
#include "store/sqlite/reads.h"
#include "store/sqlite/schema.h"

namespace waybill::store::sqlite {
namespace {

const char* vfs_of(const SqliteOptions& options) noexcept {
  return options.vfs.empty() ? nullptr : options.vfs.c_str();
}

class SqliteStore final : public Store {
 public:
  SqliteStore(SqliteOptions options, FileLock lock, std::unique_ptr<LogVfs> vfs,
              std::unique_ptr<Connection> connection);
  ~SqliteStore() override;

  // What is left of opening: kept numbers, this opening's own, the thread for checkpoints.
  [[nodiscard]] Status begin();

  Result<Committed> apply(std::span<const Command> commands, Time now) override;
  Status flush() override;

  Result<std::optional<Job>> find(const Uuid& id) override;
  Result<std::optional<std::string>> body(const Uuid& id) override;
  Result<std::optional<JobResult>> result(const Uuid& id) override;
  Result<Events> events(const Uuid& id, std::uint64_t from, std::size_t max_bytes) override;
  Result<std::vector<Job>> list(const JobFilter& filter) override;
  Result<std::vector<Ending>> endings(std::uint64_t after, std::size_t limit) override;
  Result<std::vector<Depth>> depths() override;
  Result<std::vector<QueueState>> queues() override;
  Result<std::vector<DeliveryRecord>> deliveries(std::optional<Uuid> job, bool dead_only,
                                                 std::size_t limit) override;
  Result<std::vector<std::pair<std::string, std::string>>> remembered(std::string_view prefix) override;
  Result<StoreStats> stats() override;

 private:
  // What `look` finds, once the disk has it too: nobody is to see what a power cut can take back.
  template <class Look>
  [[nodiscard]] Result<std::invoke_result_t<Look&, Reader&>> read(Look look) {
    auto found = readers_.read(std::move(look));
    (void)flush_log();  // of a store that is broken, what was applied is shown all the same
    return found;
  }
  [[nodiscard]] Status flush_log();
  [[nodiscard]] Error roll_back();
  void broke(Error error);
  [[nodiscard]] std::optional<Error> broken() const;
  // The bytes of a content that was found; nothing where its job was removed meanwhile.
  [[nodiscard]] Result<std::optional<std::string>> resolve(const Uuid& id, Content content);

  const SqliteOptions options_;
  const FileLock lock_;  // released last
  const BlobFiles files_;
  std::optional<OpenedFiles> opened_;  // not there: the file system is a test's

  // The writer's.
  const std::unique_ptr<LogVfs> vfs_;
  const std::unique_ptr<Connection> connection_;
  Statement begin_, commit_, roll_back_;
  Commands commands_;
  std::int64_t log_pages_ = 0;

  mutable std::mutex broken_mutex_;
  std::optional<Error> broken_;  // guarded by broken_mutex_
  std::atomic<bool> is_broken_{false};

  Readers readers_;
  std::optional<Checkpointer> checkpointer_;
};

SqliteStore::SqliteStore(SqliteOptions options, FileLock lock, std::unique_ptr<LogVfs> vfs,
                         std::unique_ptr<Connection> connection)
    : options_(std::move(options)),
      lock_(std::move(lock)),
      files_(options_.path),
      vfs_(std::move(vfs)),
      connection_(std::move(connection)),
      begin_(*connection_, "BEGIN"),
      commit_(*connection_, "COMMIT"),
      roll_back_(*connection_, "ROLLBACK"),
      commands_(*connection_, files_, {options_.inline_bytes, options_.recent_keys}),
      readers_(options_.path, vfs_of(options_), options_.readers) {
  sqlite3_wal_hook(
      connection_->handle(),
      [](void* self, sqlite3*, const char*, int pages) {
        static_cast<SqliteStore*>(self)->log_pages_ = pages;
        return SQLITE_OK;
      },
      this);
}

SqliteStore::~SqliteStore() { checkpointer_.reset(); }

Status SqliteStore::begin() {
  begin_.run();
  commands_.load();
  commands_.begin_epoch();
  commands_.flush();
  commit_.run();
  if (connection_->failed()) return std::unexpected(error_of(*connection_, "open", options_.path));
  if (options_.vfs.empty()) {
    const std::string path = options_.path.string();
    opened_.emplace(std::vector<std::filesystem::path>{path, path + "-wal", path + "-lock"});
  }
  if (lock_.after_a_crash()) commands_.collect_blobs();

  auto other = Connection::open(options_.path, SQLITE_OPEN_READWRITE, vfs_of(options_));
  if (!other) return std::unexpected(std::move(other.error()));
  (*other)->execute("PRAGMA synchronous = FULL");
  const std::int64_t page_bytes = connection_->number("PRAGMA page_size");
  if (connection_->failed()) return std::unexpected(error_of(*connection_, "open", options_.path));
  checkpointer_.emplace(std::move(*other), page_bytes,
                        CheckpointerOptions{options_.max_log_bytes, options_.checkpoint_thread},
                        [this](const Connection& connection) {
                          if (is_fatal(connection.code()))
                            broke(error_of(connection, "write to", options_.path));
                        });
  return {};
}

Result<Committed> SqliteStore::apply(std::span<const Command> commands, Time now) {
  if (is_broken_.load(std::memory_order_acquire)) return std::unexpected(*broken());
  Committed committed;
  committed.replies.reserve(commands.size());
  std::unique_lock turn = checkpointer_->turn();
  const std::int64_t changed_before = sqlite3_total_changes64(connection_->handle());
  vfs_->put_off_flushes(true);
  begin_.run();
  for (const Command& command : commands) {
    committed.replies.push_back(commands_.apply(command, now));
    if (connection_->failed()) break;
  }
  if (commands.empty()) {
    commands_.mark();
    if (opened_) opened_->doubt();
  }
  commands_.flush();
  commit_.run();
  vfs_->put_off_flushes(false);
  if (connection_->failed()) return std::unexpected(roll_back());
  committed.wrote = sqlite3_total_changes64(connection_->handle()) != changed_before;
  turn.unlock();
  if (commands_.drops_files()) {  // which must be there for as long as the disk says that they are needed
    if (Status flushed = flush(); !flushed) return std::unexpected(std::move(flushed.error()));
  }
  committed.changes = commands_.committed();
  checkpointer_->grew(log_pages_);
  return committed;
}

// What lies in a file that nobody will find is not on disk: its clients are not told that it is.
Status SqliteStore::flush() {
  if (Status flushed = flush_log(); !flushed) return flushed;
  if (!opened_) return {};
  const std::optional<std::filesystem::path> missing = opened_->missing(std::chrono::steady_clock::now());
  if (!missing) return {};
  return fail(
      ErrorCode::kStoreUnavailable,
      fmt::format("{} was deleted or replaced while it was in use: put it back, or restart with what is "
                  "there now",
                  missing->string()));
}

Status SqliteStore::flush_log() {
  if (is_broken_.load(std::memory_order_acquire)) return std::unexpected(*broken());
  const int code = vfs_->flush();
  if (code == SQLITE_OK) return {};
  Error error = {
      ErrorCode::kStoreUnavailable,
      fmt::format("cannot flush the log of {} ({}); the disk may have lost writes: see to it, then "
                  "restart",
                  options_.path.string(), code),
      {}};
  broke(error);
  return std::unexpected(std::move(error));
}

Error SqliteStore::roll_back() {
  Error error = error_of(*connection_, "write to", options_.path);
  const bool fatal = is_fatal(connection_->code());
  connection_->clear();
  if (sqlite3_get_autocommit(connection_->handle()) == 0) roll_back_.run();
  commands_.rolled_back();
  if (fatal || connection_->failed()) broke(error);
  connection_->clear();
  return error;
}

void SqliteStore::broke(Error error) {
  const std::lock_guard lock(broken_mutex_);
  if (!broken_) broken_ = std::move(error);
  is_broken_.store(true, std::memory_order_release);
}

std::optional<Error> SqliteStore::broken() const {
  const std::lock_guard lock(broken_mutex_);
  return broken_;
}

Result<std::optional<Job>> SqliteStore::find(const Uuid& id) {
  return read([&](Reader& reader) { return read_job(reader, id); });
}

Result<std::optional<std::string>> SqliteStore::resolve(const Uuid& id, Content content) {
  if (!content.blob) return std::move(content.bytes);
  Result<std::string> bytes = files_.read(*content.blob);
  if (bytes) return std::move(*bytes);
  if (bytes.error().code == ErrorCode::kNotFound) {
    const auto job = find(id);
    if (job && !*job) return std::nullopt;
  }
  // Without the name of the file: clients see it.
  return fail(bytes.error().code,
              "a large body or answer of the job cannot be read; `waybill store check` tells more");
}

Result<std::optional<std::string>> SqliteStore::body(const Uuid& id) {
  auto content = read([&](Reader& reader) { return read_body(reader, id); });
  if (!content) return std::unexpected(std::move(content.error()));
  if (!*content) return std::nullopt;
  return resolve(id, std::move(**content));
}

Result<std::optional<JobResult>> SqliteStore::result(const Uuid& id) {
  auto stored = read([&](Reader& reader) { return read_result(reader, id); });
  if (!stored) return std::unexpected(std::move(stored.error()));
  if (!*stored) return std::nullopt;
  Result<std::optional<std::string>> body = resolve(id, std::move((*stored)->body));
  if (!body) return std::unexpected(std::move(body.error()));
  if (!*body) return std::nullopt;
  JobResult result = std::move((*stored)->result);
  result.body = std::move(**body);
  return result;
}

Result<Events> SqliteStore::events(const Uuid& id, std::uint64_t from, std::size_t max_bytes) {
  return read([&](Reader& reader) { return read_events(reader, id, from, max_bytes); });
}

Result<std::vector<Job>> SqliteStore::list(const JobFilter& filter) {
  return read([&](Reader& reader) { return read_list(reader, filter); });
}

Result<std::vector<Ending>> SqliteStore::endings(std::uint64_t after, std::size_t limit) {
  return read([&](Reader& reader) { return read_endings(reader, after, limit); });
}

Result<std::vector<Depth>> SqliteStore::depths() { return read(read_depths); }

Result<std::vector<QueueState>> SqliteStore::queues() { return read(read_queues); }

Result<std::vector<DeliveryRecord>> SqliteStore::deliveries(std::optional<Uuid> job, bool dead_only,
                                                            std::size_t limit) {
  return read([&](Reader& reader) { return read_deliveries(reader, job, dead_only, limit); });
}

Result<std::vector<std::pair<std::string, std::string>>> SqliteStore::remembered(std::string_view prefix) {
  return read([prefix](Reader& reader) { return read_facts(reader, prefix); });
}

Result<StoreStats> SqliteStore::stats() {
  Result<StoreStats> stats = read(read_stats);
  if (stats) stats->log_bytes = static_cast<std::uint64_t>(checkpointer_->unmerged_bytes());
  return stats;
}

Status configure(Connection& connection, const SqliteOptions& options, std::int64_t version) {
  if (version == 0) connection.execute("PRAGMA auto_vacuum = INCREMENTAL");  // before there are tables
  {
    Statement wal(connection, "PRAGMA journal_mode = WAL");
    Rows rows = wal.rows();
    if (rows.next() && rows.text(0) != "wal") {
      return fail(
          ErrorCode::kUnsupported,
          fmt::format(
              "{} cannot have a write-ahead log: its file system has no shared memory; put the store on "
              "a local disk",
              options.path.string()));
    }
  }
  connection.execute("PRAGMA synchronous = FULL");
  connection.execute("PRAGMA wal_autocheckpoint = 0");
  connection.execute("PRAGMA secure_delete = OFF");
  connection.execute("PRAGMA temp_store = MEMORY");
  connection.execute("PRAGMA cache_size = -32768");
  connection.execute(fmt::format("PRAGMA journal_size_limit = {}", options.max_log_bytes / 4).c_str());
  if (connection.failed()) return std::unexpected(error_of(connection, "open", options.path));
  return {};
}

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const SqliteOptions& options) {
  std::error_code failed;
  if (options.path.has_parent_path()) std::filesystem::create_directories(options.path.parent_path(), failed);
  if (failed) {
    return fail(ErrorCode::kIo,
                fmt::format("cannot make the folder of {}: {}", options.path.string(), failed.message()));
  }
  Result<FileLock> lock = FileLock::take(options.path);
  if (!lock) return std::unexpected(std::move(lock.error()));
  auto vfs = std::make_unique<LogVfs>(vfs_of(options));
  auto connection = Connection::open(options.path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs->name());
  if (!connection) return std::unexpected(std::move(connection.error()));
  const Result<std::int64_t> version = version_of(**connection, options.path);
  if (!version) return std::unexpected(version.error());
  if (const Status configured = configure(**connection, options, *version); !configured) {
    return std::unexpected(configured.error());
  }
  if (const Status migrated = migrate(**connection, options.path, *version); !migrated) {
    return std::unexpected(migrated.error());
  }
  auto store =
      std::make_unique<SqliteStore>(options, std::move(*lock), std::move(vfs), std::move(*connection));
  if (const Status begun = store->begin(); !begun) return std::unexpected(begun.error());
  return store;
}

}  // namespace waybill::store::sqlite
