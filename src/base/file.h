// Files: mapped for reading, replaced atomically when written.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace waybill {

// A file mapped read-only; pages come in as they are touched. Movable; the bytes stay where they are.
class MappedFile {
 public:
  // Fails with kNotFound or kIo. An empty file maps to an empty span.
  [[nodiscard]] static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  // Copies the bytes at `offset` without touching the mapping: what is read in small pieces from all over a
  // large file would else become resident in pieces of 64 KiB (the kernel maps around a fault). False when
  // the file has become shorter, or cannot be read.
  [[nodiscard]] bool read_at(std::size_t offset, std::span<std::byte> out) const noexcept;
  // Gives the memory of pages that were read back to the system; they come in again when they are touched.
  void drop_pages() const noexcept;
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(data_), size_};
  }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  int descriptor_ = -1;
};

// The whole file as text; at most `max_bytes` of it are accepted (kInvalidInput beyond).
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path,
                                            std::size_t max_bytes = 256U << 20);

// Writes beside the target, flushes, renames: a reader sees the old file or the new one, never a part.
// Creates missing folders. On failure nothing is left behind.
[[nodiscard]] Status write_file_atomically(const std::filesystem::path& path,
                                           std::span<const std::span<const std::byte>> parts);
[[nodiscard]] Status write_file_atomically(const std::filesystem::path& path, std::string_view contents);

}  // namespace waybill
