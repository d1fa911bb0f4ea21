// back_up_store(): a copy of one moment, while the store is used.
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "store/sqlite/blob_files.h"
#include "store/sqlite/maintenance.h"
#include "store/sqlite/open_store.h"

namespace waybill::store::sqlite {
namespace {

namespace fs = std::filesystem;

constexpr int kPagesAtOnce = 1024;

Status os_error(const fs::path& path, int error) {
  return fail(ErrorCode::kIo,
              fmt::format("cannot write {}: {}", path.string(), std::generic_category().message(error)));
}

Status flush(const fs::path& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC);
  if (descriptor < 0) return os_error(path, errno);
  const int error = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  return error == 0 ? Status{} : os_error(path, error);
}

// Page by page, of the moment at which the transaction of `from` began.
Status copy_pages(Connection& from, const fs::path& target, const Progress& progress) {
  auto to = Connection::open(target, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  if (!to) return std::unexpected(std::move(to.error()));
  (*to)->execute("PRAGMA synchronous = OFF");  // it is flushed when it is whole
  (*to)->execute("PRAGMA journal_mode = OFF");
  sqlite3_backup* backup = sqlite3_backup_init((*to)->handle(), "main", from.handle(), "main");
  if (backup == nullptr) {
    (*to)->note(sqlite3_extended_errcode((*to)->handle()));
    return std::unexpected(error_of(**to, "write to", target));
  }
  int code = SQLITE_OK;
  while (code == SQLITE_OK) {
    code = sqlite3_backup_step(backup, kPagesAtOnce);
    const auto total = static_cast<std::size_t>(sqlite3_backup_pagecount(backup));
    report(progress, "copying the database",
           total - static_cast<std::size_t>(sqlite3_backup_remaining(backup)), total);
  }
  const int finished = sqlite3_backup_finish(backup);
  (*to)->note(code == SQLITE_DONE ? finished : code);
  if ((*to)->failed()) return std::unexpected(error_of(**to, "write to", target));
  return {};
}

Status copy_blobs(Connection& from, const BlobFiles& files, const BlobFiles& copies, StoreBackup& done,
                  const Progress& progress) {
  std::vector<Sha256> hashes;
  {
    Statement all(from, "SELECT hash FROM blobs");
    for (Rows rows = all.rows(); rows.next();) hashes.push_back(hash_of(rows.text(0)));
  }
  std::vector<fs::path> folders;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    report(progress, "copying large bodies", i, hashes.size());
    const Result<std::string> content = files.read(hashes[i]);
    if (!content && content.error().code == ErrorCode::kNotFound) {
      ++done.gone;
      continue;
    }
    if (!content) return std::unexpected(content.error());
    BlobFiles::Written written = copies.write(hashes[i], *content);
    if (written.error != 0) return os_error(copies.path_of(hashes[i]), written.error);
    folders.push_back(std::move(written.folder));
    done.bytes += content->size();
    ++done.blobs;
  }
  if (const int error = copies.sync(folders); error != 0) return os_error(copies.folder(), error);
  return {};
}

}  // namespace

Result<StoreBackup> back_up_store(const fs::path& path, const fs::path& target, const Progress& progress) {
  auto opened = open_existing(path);
  if (!opened) return std::unexpected(std::move(opened.error()));
  std::error_code ignored;
  if (fs::exists(target, ignored)) {
    return fail(ErrorCode::kInvalidInput,
                fmt::format("{} is there already; give the backup another name", target.string()));
  }
  Connection& connection = **opened;
  connection.execute("BEGIN");
  static_cast<void>(connection.number("SELECT count(*) FROM counters"));  // the moment
  if (connection.failed()) return std::unexpected(error_of(connection, "read from", path));

  StoreBackup done;
  const fs::path partial = target.string() + ".partial";
  fs::remove(partial, ignored);
  Status copied = copy_pages(connection, partial, progress);
  if (copied) copied = copy_blobs(connection, BlobFiles(path), BlobFiles(target), done, progress);
  if (copied) copied = flush(partial, O_RDWR);
  if (copied && ::rename(partial.c_str(), target.c_str()) != 0) copied = os_error(target, errno);
  if (copied)
    copied = flush(target.has_parent_path() ? target.parent_path() : fs::path("."), O_RDONLY | O_DIRECTORY);
  if (!copied) {
    fs::remove(partial, ignored);
    return std::unexpected(std::move(copied.error()));
  }
  done.bytes += fs::file_size(target, ignored);
  return done;
}

}  // namespace waybill::store::sqlite
