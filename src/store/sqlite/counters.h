// Numbers of the store as a whole: what comes next, and how many there are.
#pragma once

#include <array>
#include <cstdint>

#include "store/sqlite/connection.h"
#include "store/sqlite/schema.h"

namespace waybill::store::sqlite {

// The table `counters` in memory; flush() writes what has changed. Only the writer has one.
class Counters {
 public:
  explicit Counters(Connection& connection);

  // From the file; also after a rollback.
  void load();
  void flush();

  [[nodiscard]] std::int64_t get(Counter counter) const noexcept {
    return values_[static_cast<std::size_t>(counter)];
  }
  // Returns what it is then.
  std::int64_t add(Counter counter, std::int64_t by) noexcept;
  void set(Counter counter, std::int64_t value) noexcept {
    values_[static_cast<std::size_t>(counter)] = value;
  }

 private:
  Statement load_, save_;
  std::array<std::int64_t, kCounters> values_{}, saved_{};
};

}  // namespace waybill::store::sqlite
