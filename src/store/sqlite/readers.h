// Connections that only read, for as many threads as ask at a time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/names.h"

namespace waybill::store::sqlite {

// One connection, its names and its statements. For one thread at a time.
class Reader {
 public:
  explicit Reader(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)), names_(*connection_) {}

  [[nodiscard]] Connection& connection() noexcept { return *connection_; }
  [[nodiscard]] Names& names() noexcept { return names_; }
  // Kept from one read to the next.
  [[nodiscard]] Statement& statement(const std::string& sql);

 private:
  std::unique_ptr<Connection> connection_;
  Names names_;
  std::map<std::string, Statement> statements_;
};

// Thread-safe. Opens a connection when one is needed, and keeps it.
class Readers {
 public:
  Readers(std::filesystem::path path, const char* vfs, std::size_t most);

  // `look(reader)` within one transaction: it sees what was committed when it began. Waits where all are in
  // use.
  template <class Look>
  [[nodiscard]] Result<std::invoke_result_t<Look&, Reader&>> read(Look look) {
    Result<std::unique_ptr<Reader>> reader = take();
    if (!reader) return std::unexpected(std::move(reader.error()));
    Connection& connection = (*reader)->connection();
    (*reader)->statement("BEGIN").run();
    auto found = look(**reader);
    (*reader)->statement("COMMIT").run();
    if (!connection.failed()) {
      give_back(std::move(*reader));
      return found;
    }
    Error error = error_of(connection, "read from", path_);
    discard();
    return std::unexpected(std::move(error));
  }

 private:
  [[nodiscard]] Result<std::unique_ptr<Reader>> take();
  void give_back(std::unique_ptr<Reader> reader);
  void discard();  // of one that was taken: a new one is opened in its place

  const std::filesystem::path path_;
  const char* const vfs_;
  const std::size_t most_;

  std::mutex mutex_;  // guards the next three
  std::condition_variable returned_;
  std::size_t taken_ = 0;
  std::vector<std::unique_ptr<Reader>> free_;
};

}  // namespace waybill::store::sqlite
