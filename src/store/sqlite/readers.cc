#include "store/sqlite/readers.h"

namespace waybill::store::sqlite {

Statement& Reader::statement(const std::string& sql) {
  return statements_.try_emplace(sql, *connection_, sql).first->second;
}

Readers::Readers(std::filesystem::path path, const char* vfs, std::size_t most)
    : path_(std::move(path)), vfs_(vfs), most_(most) {}

Result<std::unique_ptr<Reader>> Readers::take() {
  {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [this] { return taken_ < most_; });
    ++taken_;
    if (!free_.empty()) {
      std::unique_ptr<Reader> reader = std::move(free_.back());
      free_.pop_back();
      return reader;
    }
  }
  Result<std::unique_ptr<Connection>> connection = Connection::open(path_, SQLITE_OPEN_READWRITE, vfs_);
  if (connection) {
    (*connection)->execute("PRAGMA query_only = ON");
    (*connection)->execute("PRAGMA cache_size = -4096");
    if (!(*connection)->failed()) return std::make_unique<Reader>(std::move(*connection));
  }
  Error error = connection ? error_of(**connection, "read from", path_) : std::move(connection.error());
  discard();
  return std::unexpected(std::move(error));
}

void Readers::give_back(std::unique_ptr<Reader> reader) {
  {
    const std::lock_guard lock(mutex_);
    --taken_;
    free_.push_back(std::move(reader));
  }
  returned_.notify_one();
}

void Readers::discard() {
  {
    const std::lock_guard lock(mutex_);
    --taken_;
  }
  returned_.notify_one();
}

}  // namespace waybill::store::sqlite
