// SQLite, as little of it as is needed: a connection whose first failure sticks, and its prepared statements.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sqlite3.h>

#include "base/result.h"

namespace waybill::store::sqlite {

// Not thread-safe. After a failure everything done with it does nothing and finds nothing, until clear(): a
// transaction is written without a check after each step, and asked once at its end.
class Connection {
 public:
  // `flags` of sqlite3_open_v2; `vfs` null: the system's.
  [[nodiscard]] static Result<std::unique_ptr<Connection>> open(const std::filesystem::path& path, int flags,
                                                                const char* vfs);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] sqlite3* handle() const noexcept { return handle_; }

  [[nodiscard]] bool failed() const noexcept { return code_ != SQLITE_OK; }
  [[nodiscard]] int code() const noexcept { return code_; }  // extended
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  void clear() noexcept { code_ = SQLITE_OK; }
  // Remembers the first failure; SQLITE_OK, SQLITE_ROW and SQLITE_DONE are none.
  void note(int code);
  void fail_with(int code, std::string message);

  // Statements without parameters whose rows do not matter.
  void execute(const char* sql);
  // The first column of the first row; 0 where there is none.
  [[nodiscard]] std::int64_t number(const char* sql);

 private:
  explicit Connection(sqlite3* handle) noexcept : handle_(handle) {}

  sqlite3* handle_;
  int code_ = SQLITE_OK;
  std::string message_;
};

// The disk loses writes, or what is on it is damaged: nothing may be written any more.
[[nodiscard]] bool is_fatal(int code) noexcept;

// As an Error: kStoreUnavailable, or kCorrupt. `doing`: "write to", "read from".
[[nodiscard]] Error error_of(const Connection& connection, std::string_view doing,
                             const std::filesystem::path& path);

// Bytes that are stored as such and not as text.
struct Bytes {
  std::string_view bytes;
};

// Text that is stored as NULL where it is empty.
[[nodiscard]] inline std::optional<std::string_view> optional_text(std::string_view text) noexcept {
  return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
}

class Statement;

// The rows of a statement that was started; the statement is free again when they go. What a column returns
// is valid until the next row.
class Rows {
 public:
  explicit Rows(Statement& statement) noexcept : statement_(&statement) {}
  Rows(Rows&& other) noexcept : statement_(std::exchange(other.statement_, nullptr)) {}
  Rows& operator=(Rows&&) = delete;
  ~Rows();

  [[nodiscard]] bool next();
  [[nodiscard]] std::int64_t integer(int column) const noexcept;
  [[nodiscard]] std::string_view text(int column) const noexcept;  // of NULL: empty
  [[nodiscard]] bool is_null(int column) const noexcept;

 private:
  Statement* statement_;
};

// Prepared when it is used for the first time, and kept.
class Statement {
 public:
  Statement(Connection& connection, std::string sql) : connection_(connection), sql_(std::move(sql)) {}
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // For statements that only write. Values are read before it returns.
  template <class... Values>
  void run(const Values&... values) {
    if (!start(values...)) return;
    step();
    reset();
  }
  // Texts and bytes must live as long as the rows.
  template <class... Values>
  [[nodiscard]] Rows rows(const Values&... values) {
    static_cast<void>(start(values...));
    return Rows(*this);
  }

 private:
  friend class Rows;

  template <class... Values>
  [[nodiscard]] bool start(const Values&... values) {
    if (connection_.failed() || !prepare()) return false;
    [[maybe_unused]] int place = 1;
    (bind_next(place, values), ...);
    return !connection_.failed();
  }
  [[nodiscard]] bool prepare();
  bool step();
  void reset() noexcept;

  template <class Value>
  void bind_next(int& place, const Value& value) {
    bind(place++, value);
  }
  void bind_next(int& place, const std::vector<std::string_view>& values) {
    for (const std::string_view value : values) bind(place++, value);
  }
  void bind(int place, std::integral auto value) {
    connection_.note(sqlite3_bind_int64(handle_, place, static_cast<std::int64_t>(value)));
  }
  void bind(int place, std::string_view value);
  void bind(int place, Bytes value);
  void bind(int place, std::nullopt_t) { connection_.note(sqlite3_bind_null(handle_, place)); }
  template <class Value>
  void bind(int place, const std::optional<Value>& value) {
    if (value) {
      bind(place, *value);
    } else {
      bind(place, std::nullopt);
    }
  }

  Connection& connection_;
  std::string sql_;
  sqlite3_stmt* handle_ = nullptr;
};

}  // namespace waybill::store::sqlite
