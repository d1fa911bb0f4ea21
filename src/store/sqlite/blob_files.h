// Bodies and results too large for the database: files named by what they hold.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"

namespace waybill::store::sqlite {

// The folder `PATH-blobs`: ab/cdef... is the content whose SHA-256 is abcdef... Thread-safe: it has no state.
class BlobFiles {
 public:
  explicit BlobFiles(const std::filesystem::path& database);

  // Whole and on disk when it returns, but for the entry in its folder: sync() does that for several at once.
  // `error` of the system, 0: none. Returns the folder that is to be synced.
  struct Written {
    std::filesystem::path folder;
    int error = 0;
  };
  [[nodiscard]] Written write(const Sha256& hash, std::string_view content) const;
  // The error of the system, 0: none.
  [[nodiscard]] int sync(const std::vector<std::filesystem::path>& folders) const;

  // kNotFound where there is none, kCorrupt where it holds something else.
  [[nodiscard]] Result<std::string> read(const Sha256& hash) const;
  void remove(const Sha256& hash) const noexcept;
  // Of each file in the folder. Not while another thread writes: what was begun and not finished is removed.
  void for_each(const std::function<void(const Sha256& hash, std::uint64_t bytes)>& found) const;

  [[nodiscard]] std::filesystem::path path_of(const Sha256& hash) const;
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }

 private:
  std::filesystem::path folder_;
};

[[nodiscard]] inline std::string_view bytes_of(const Sha256& hash) noexcept {
  return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}
// Of a column; anything but 32 bytes is the hash of nothing that there is.
[[nodiscard]] Sha256 hash_of(std::string_view bytes) noexcept;

}  // namespace waybill::store::sqlite
