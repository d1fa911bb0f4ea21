// Whether the files that were opened are still the ones that their paths name.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"

namespace waybill::store::sqlite {

// A file that was deleted or replaced can be written and flushed as before, and nobody will ever find what
// was written. Thread-safe.
class OpenedFiles {
 public:
  // Files that are open and in their places now.
  explicit OpenedFiles(const std::vector<std::filesystem::path>& paths);

  // The first that is not in its place, by its device and number. Looks at most every kBetweenLooks, but each
  // time after one that was not; nothing in between.
  [[nodiscard]] std::optional<std::filesystem::path> missing(TimePoint now);
  // Looks at the next question in any case.
  void doubt() noexcept { look_at_.store(0, std::memory_order_relaxed); }

  static constexpr Duration kBetweenLooks = std::chrono::milliseconds(100);

 private:
  struct File {
    std::filesystem::path path;
    dev_t device = 0;
    ino_t number = 0;
  };
  std::vector<File> files_;
  std::atomic<Duration::rep> look_at_{0};
};

}  // namespace waybill::store::sqlite
