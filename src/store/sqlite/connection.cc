#include "store/sqlite/connection.h"

#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace waybill::store::sqlite {
namespace {

// A mutex that every allocation would take, for a figure that nobody reads. Before the first connection.
void configure_once() {
  static std::once_flag once;
  std::call_once(once, [] { sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); });
}

const char* data_of(std::string_view text) noexcept {
  return text.data() == nullptr ? "" : text.data();  // null would be stored as NULL
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(const std::filesystem::path& path, int flags,
                                                     const char* vfs) {
  configure_once();
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, vfs);
  std::unique_ptr<Connection> connection(new Connection(handle));
  if (code != SQLITE_OK) {
    return fail(code == SQLITE_CANTOPEN ? ErrorCode::kIo : ErrorCode::kStoreUnavailable,
                fmt::format("cannot open {}: {}", path.string(),
                            handle == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle)));
  }
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, 5000);
  return connection;
}

Connection::~Connection() { sqlite3_close(handle_); }

void Connection::note(int code) {
  if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE || failed()) return;
  code_ = code;
  message_ = sqlite3_errmsg(handle_);
}

void Connection::fail_with(int code, std::string message) {
  if (failed()) return;
  code_ = code;
  message_ = std::move(message);
}

void Connection::execute(const char* sql) {
  if (!failed()) note(sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr));
}

std::int64_t Connection::number(const char* sql) {
  Statement statement(*this, sql);
  Rows rows = statement.rows();
  return rows.next() ? rows.integer(0) : 0;
}

bool is_fatal(int code) noexcept {
  switch (code & 0xFF) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return true;
    case SQLITE_IOERR:
      // No room for the index of the log, or no memory: nothing that was written is lost.
      return code != SQLITE_IOERR_SHMSIZE && code != SQLITE_IOERR_NOMEM;
    default:
      return false;
  }
}

Error error_of(const Connection& connection, std::string_view doing, const std::filesystem::path& path) {
  // Clients see it: they are told its name, and not where it lies.
  const std::string name = path.filename().string();
  const int code = connection.code();
  const int kind = code & 0xFF;
  if (kind == SQLITE_FULL || code == SQLITE_IOERR_SHMSIZE) {
    return {ErrorCode::kStoreUnavailable,
            fmt::format("cannot {} {}: the disk is full; make room, it goes on by itself", doing, name), ""};
  }
  if (kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB) {
    return {ErrorCode::kStoreUnavailable,
            fmt::format("cannot {} {}: {}; run `waybill store check`, and restore a backup if it says so",
                        doing, name, connection.message()),
            ""};
  }
  if (is_fatal(code)) {
    return {ErrorCode::kStoreUnavailable,
            fmt::format("cannot {} {}: {} ({}); the disk may have lost writes: see to it, then restart",
                        doing, name, connection.message(), code),
            ""};
  }
  return {ErrorCode::kStoreUnavailable,
          fmt::format("cannot {} {}: {} ({})", doing, name, connection.message(), code), ""};
}

Statement::~Statement() { sqlite3_finalize(handle_); }

bool Statement::prepare() {
  if (handle_ != nullptr) return true;
  connection_.note(sqlite3_prepare_v3(connection_.handle(), sql_.c_str(), static_cast<int>(sql_.size() + 1),
                                      SQLITE_PREPARE_PERSISTENT, &handle_, nullptr));
  return handle_ != nullptr;
}

bool Statement::step() {
  if (connection_.failed()) return false;
  const int code = sqlite3_step(handle_);
  connection_.note(code);
  return code == SQLITE_ROW;
}

void Statement::reset() noexcept {
  if (handle_ != nullptr) sqlite3_reset(handle_);  // the failure it repeats is known
}

void Statement::bind(int place, std::string_view value) {
  connection_.note(
      sqlite3_bind_text(handle_, place, data_of(value), static_cast<int>(value.size()), SQLITE_STATIC));
}

void Statement::bind(int place, Bytes value) {
  connection_.note(sqlite3_bind_blob(handle_, place, data_of(value.bytes),
                                     static_cast<int>(value.bytes.size()), SQLITE_STATIC));
}

Rows::~Rows() {
  if (statement_ != nullptr) statement_->reset();
}

bool Rows::next() { return statement_->handle_ != nullptr && statement_->step(); }

std::int64_t Rows::integer(int column) const noexcept {
  return sqlite3_column_int64(statement_->handle_, column);
}

std::string_view Rows::text(int column) const noexcept {
  const void* bytes = sqlite3_column_blob(statement_->handle_, column);
  const int size = sqlite3_column_bytes(statement_->handle_, column);
  return bytes == nullptr ? std::string_view()
                          : std::string_view(static_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

bool Rows::is_null(int column) const noexcept {
  return sqlite3_column_type(statement_->handle_, column) == SQLITE_NULL;
}

}  // namespace waybill::store::sqlite
