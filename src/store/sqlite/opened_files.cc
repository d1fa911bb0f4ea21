#include "store/sqlite/opened_files.h"

#include <sys/stat.h>

namespace waybill::store::sqlite {

OpenedFiles::OpenedFiles(const std::vector<std::filesystem::path>& paths) {
  for (const std::filesystem::path& path : paths) {
    struct stat found{};
    // One that is not there is missing from the first look on.
    if (::stat(path.c_str(), &found) != 0) found = {};
    files_.push_back({path, found.st_dev, found.st_ino});
  }
}

std::optional<std::filesystem::path> OpenedFiles::missing(TimePoint now) {
  const Duration::rep at = std::chrono::duration_cast<Duration>(now.time_since_epoch()).count();
  if (at < look_at_.load(std::memory_order_relaxed)) return std::nullopt;
  for (const File& file : files_) {
    struct stat found{};
    const bool is_there = ::stat(file.path.c_str(), &found) == 0;
    if (is_there && found.st_dev == file.device && found.st_ino == file.number) continue;
    doubt();
    return file.path;
  }
  look_at_.store(at + kBetweenLooks.count(), std::memory_order_relaxed);
  return std::nullopt;
}

}  // namespace waybill::store::sqlite
