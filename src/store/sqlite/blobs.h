// Which large bodies and results are used, and by how many jobs.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "store/sqlite/blob_files.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/counters.h"

namespace waybill::store::sqlite {

// The table `blobs` together with the files. A file is on disk before the transaction that names it, and is
// removed after the one that no longer does: what a crash leaves behind are files that nobody names.
class Blobs {
 public:
  Blobs(Connection& connection, Counters& counters, const BlobFiles& files, std::size_t inline_bytes);

  // Where it is too large for the database: written, and counted as used once more. Else nothing.
  [[nodiscard]] std::optional<Sha256> keep(std::string_view content);
  void drop(const Sha256& hash);

  // The steps of a transaction: before it is committed, after that, or after it was rolled back.
  void sync();
  [[nodiscard]] bool drops_files() const noexcept { return !unused_.empty(); }  // in committed()
  void committed();
  void rolled_back();

  // Removes files that no row names: what crashes left behind. Returns how many.
  std::size_t collect();

 private:
  void fail(int error);

  Connection& connection_;
  Counters& counters_;
  const BlobFiles& files_;
  const std::size_t inline_bytes_;
  Statement uses_, insert_, use_, remove_;
  std::vector<std::filesystem::path> unsynced_;  // folders
  std::vector<Sha256> written_, unused_;         // in this transaction
};

}  // namespace waybill::store::sqlite
