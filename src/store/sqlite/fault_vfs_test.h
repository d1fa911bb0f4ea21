// A file system in memory that loses what a disk may lose: for SQLite, in tests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <sqlite3.h>

namespace waybill::store::sqlite {

// A disk with its files. Registered as an SQLite VFS of its name while it lives. For one thread.
class FaultyDisk {
 public:
  explicit FaultyDisk(std::string name);
  ~FaultyDisk();
  FaultyDisk(const FaultyDisk&) = delete;
  FaultyDisk& operator=(const FaultyDisk&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  // Writes, truncations and flushes so far.
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }

  // The power goes before the change of that number is done; from then on everything fails.
  void cut_power_at(std::uint64_t change) { cut_at_ = change; }
  // Writes that find no room fail from that change on, until another number is set.
  void full_from(std::uint64_t change) { full_from_ = change; }
  // That flush fails, and what it would have flushed is lost with the power, also after later flushes.
  void fail_flush_at(std::uint64_t change) { bad_flush_at_ = change; }
  // That write writes a part and fails.
  void fail_write_at(std::uint64_t change) { bad_write_at_ = change; }
  static constexpr std::uint64_t kNever = UINT64_MAX;

  // The power comes back: of what was not flushed each write is there whole, in part, or not at all.
  void restart(std::uint64_t seed);

  struct Change {
    std::size_t offset = 0;
    std::string bytes;
    bool truncates = false;  // to `offset`
  };
  struct File {
    std::string seen, flushed;      // by the programs; on the disk
    std::vector<Change> unflushed;  // between the two
    int shared = 0;                 // locks
    bool reserved = false, pending = false, exclusive = false;
    std::vector<std::unique_ptr<std::array<char, 32768>>> memory;  // shared by the connections
    std::array<int, SQLITE_SHM_NLOCK> readers{};
    std::array<bool, SQLITE_SHM_NLOCK> writers{};
  };

  // For the functions of the VFS.
  [[nodiscard]] std::shared_ptr<File> open(const std::string& path, bool create);
  [[nodiscard]] bool exists(const std::string& path) const { return files_.contains(path); }
  void remove(const std::string& path) { files_.erase(path); }
  [[nodiscard]] int write(File& file, std::size_t offset, const std::string& bytes);
  [[nodiscard]] int truncate(File& file, std::size_t size);
  [[nodiscard]] int flush(File& file);
  [[nodiscard]] bool is_off() const noexcept { return off_; }

 private:
  [[nodiscard]] bool power_fails();

  const std::string name_;
  sqlite3_vfs vfs_{};
  std::map<std::string, std::shared_ptr<File>> files_;  // shared with connections, which outlive a restart
  std::uint64_t changes_ = 0, cut_at_ = kNever, full_from_ = kNever, bad_flush_at_ = kNever,
                bad_write_at_ = kNever;
  bool off_ = false;
};

}  // namespace waybill::store::sqlite
