#include "store/sqlite/blob_files.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <span>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

namespace waybill::store::sqlite {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporary = ".tmp";

std::string hex_of(const Sha256& hash) {
  std::string hex;
  for (const std::uint8_t byte : hash) fmt::format_to(std::back_inserter(hex), "{:02x}", byte);
  return hex;
}

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool parse_hex(std::string_view hex, Sha256& hash) noexcept {
  if (hex.size() != 2 * hash.size()) return false;
  for (std::size_t i = 0; i < hash.size(); ++i) {
    const int high = hex_value(hex[2 * i]), low = hex_value(hex[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    hash[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return true;
}

int sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  const int error = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  return error;
}

// A folder that is there is taken to be on disk, so one that could not be flushed does not stay.
int make_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0755) != 0) return errno == EEXIST ? 0 : errno;
  const int error = sync_folder(folder.has_parent_path() ? folder.parent_path() : fs::path("."));
  if (error != 0) ::rmdir(folder.c_str());
  return error;
}

int write_whole(const fs::path& path, std::string_view content) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) return errno;
  int error = 0;
  while (!content.empty() && error == 0) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0) {
      if (errno != EINTR) error = errno;
    } else {
      content.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  if (error == 0 && ::fsync(descriptor) != 0) error = errno;
  if (::close(descriptor) != 0 && error == 0) error = errno;
  return error;
}

}  // namespace

BlobFiles::BlobFiles(const fs::path& database) : folder_(database.string() + "-blobs") {}

fs::path BlobFiles::path_of(const Sha256& hash) const {
  const std::string hex = hex_of(hash);
  return folder_ / hex.substr(0, 2) / hex.substr(2);
}

BlobFiles::Written BlobFiles::write(const Sha256& hash, std::string_view content) const {
  static std::atomic<unsigned> count = 0;
  const fs::path path = path_of(hash);
  Written written{path.parent_path()};
  if ((written.error = make_folder(folder_)) != 0) return written;
  if ((written.error = make_folder(written.folder)) != 0) return written;
  const fs::path temporary = fmt::format("{}.{}-{}{}", path.string(), ::getpid(), count++, kTemporary);
  written.error = write_whole(temporary, content);
  if (written.error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) written.error = errno;
  if (written.error != 0) ::unlink(temporary.c_str());
  return written;
}

int BlobFiles::sync(const std::vector<fs::path>& folders) const {
  for (const fs::path& folder : folders) {
    if (const int error = sync_folder(folder); error != 0) return error;
  }
  return 0;
}

Result<std::string> BlobFiles::read(const Sha256& hash) const {
  const fs::path path = path_of(hash);
  Result<std::string> content = read_file(path, SIZE_MAX);
  if (content && sha256(std::as_bytes(std::span(*content))) != hash) {
    return fail(ErrorCode::kCorrupt, fmt::format("{} does not hold what its name says", path.string()));
  }
  return content;
}

void BlobFiles::remove(const Sha256& hash) const noexcept { ::unlink(path_of(hash).c_str()); }

void BlobFiles::for_each(const std::function<void(const Sha256& hash, std::uint64_t bytes)>& found) const {
  std::error_code ignored;
  for (const fs::directory_entry& folder : fs::directory_iterator(folder_, ignored)) {
    for (const fs::directory_entry& file : fs::directory_iterator(folder.path(), ignored)) {
      if (file.path().extension() == kTemporary) {
        fs::remove(file.path(), ignored);
        continue;
      }
      Sha256 hash;
      if (!parse_hex(folder.path().filename().string() + file.path().filename().string(), hash)) continue;
      const std::uintmax_t bytes = file.file_size(ignored);
      found(hash, ignored ? 0 : bytes);
    }
  }
}

Sha256 hash_of(std::string_view bytes) noexcept {
  Sha256 hash{};
  if (bytes.size() == hash.size()) std::memcpy(hash.data(), bytes.data(), hash.size());
  return hash;
}

}  // namespace waybill::store::sqlite
