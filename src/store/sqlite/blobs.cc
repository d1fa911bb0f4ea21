#include "store/sqlite/blobs.h"

#include <algorithm>
#include <cerrno>
#include <span>
#include <system_error>

#include <fmt/format.h>

namespace waybill::store::sqlite {

Blobs::Blobs(Connection& connection, Counters& counters, const BlobFiles& files, std::size_t inline_bytes)
    : connection_(connection),
      counters_(counters),
      files_(files),
      inline_bytes_(inline_bytes),
      uses_(connection, "SELECT uses, bytes FROM blobs WHERE hash = ?1"),
      insert_(connection, "INSERT INTO blobs (hash, bytes, uses) VALUES (?1, ?2, 1)"),
      use_(connection, "UPDATE blobs SET uses = uses + ?2 WHERE hash = ?1"),
      remove_(connection, "DELETE FROM blobs WHERE hash = ?1") {}

// Never fatal, whatever it was, also a flush: the database is whole, and nothing that was acknowledged names
// the file. It is removed with the transaction, and the next attempt writes another one.
void Blobs::fail(int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  connection_.fail_with(full ? SQLITE_FULL : SQLITE_CANTOPEN,
                        fmt::format("the file of a large body: {}", std::generic_category().message(error)));
}

std::optional<Sha256> Blobs::keep(std::string_view content) {
  if (content.size() <= inline_bytes_ || connection_.failed()) return std::nullopt;
  const Sha256 hash = sha256(std::as_bytes(std::span(content)));
  const bool known = uses_.rows(Bytes{bytes_of(hash)}).next();
  if (known) {
    use_.run(Bytes{bytes_of(hash)}, 1);
    return hash;
  }
  // Also where there is a file of that name: it may be what a crash left of it.
  BlobFiles::Written written = files_.write(hash, content);
  if (written.error != 0) {
    fail(written.error);
    return hash;
  }
  if (std::ranges::find(unsynced_, written.folder) == unsynced_.end()) {
    unsynced_.push_back(std::move(written.folder));
  }
  written_.push_back(hash);
  std::erase(unused_, hash);
  insert_.run(Bytes{bytes_of(hash)}, content.size());
  counters_.add(Counter::kBlobs, 1);
  counters_.add(Counter::kBlobBytes, static_cast<std::int64_t>(content.size()));
  return hash;
}

void Blobs::drop(const Sha256& hash) {
  std::int64_t uses = 0, bytes = 0;
  {
    Rows rows = uses_.rows(Bytes{bytes_of(hash)});
    if (!rows.next()) return;
    uses = rows.integer(0);
    bytes = rows.integer(1);
  }
  if (uses > 1) return use_.run(Bytes{bytes_of(hash)}, -1);
  remove_.run(Bytes{bytes_of(hash)});
  counters_.add(Counter::kBlobs, -1);
  counters_.add(Counter::kBlobBytes, -bytes);
  unused_.push_back(hash);
}

void Blobs::sync() {
  if (unsynced_.empty() || connection_.failed()) return;
  if (const int error = files_.sync(unsynced_); error != 0) fail(error);
  unsynced_.clear();
}

void Blobs::committed() {
  for (const Sha256& hash : unused_) files_.remove(hash);
  unused_.clear();
  written_.clear();
}

void Blobs::rolled_back() {
  for (const Sha256& hash : written_) {
    const bool known = uses_.rows(Bytes{bytes_of(hash)}).next();
    if (!known && !connection_.failed()) files_.remove(hash);
  }
  unsynced_.clear();
  unused_.clear();
  written_.clear();
}

std::size_t Blobs::collect() {
  std::size_t removed = 0;
  files_.for_each([&](const Sha256& hash, std::uint64_t) {
    const bool known = uses_.rows(Bytes{bytes_of(hash)}).next();
    if (known || connection_.failed()) return;
    files_.remove(hash);
    ++removed;
  });
  return removed;
}

}  // namespace waybill::store::sqlite
