// The newest idempotency keys, in the order in which they came.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

#include "store/job.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/counters.h"

namespace waybill::store::sqlite {

// The slots of the table `keys` that a key may lie in begin at its home: the low half of its hash but for the
// last two bits.
inline constexpr std::int64_t kInHome = 3;
[[nodiscard]] constexpr std::int64_t home_of(const Hash128& key) noexcept {
  return static_cast<std::int64_t>(key.low) & ~kInHome;
}
// The end of a key, as it is stored.
[[nodiscard]] constexpr Time stored_end(Time until) noexcept { return until == kNever ? INT64_MAX : until; }

// A hash is a random place in a B-tree, so a key put there at once dirties a page of its own, which goes to
// the log and from there to the database: 8 KiB for a row of 60 bytes. So keys are appended first, to one of
// two tables with an index in memory. When it has `capacity` of them the other takes over, and its keys are
// taken out in the order of their homes, many to a page.
//
// Counters say which table is taken out of, and up to which home it has been; its rows below that are void.
class RecentKeys {
 public:
  RecentKeys(Connection& connection, Counters& counters, std::size_t capacity);

  struct Row {
    Hash128 key, payload;
    std::int64_t job = 0;
    Time end = 0;  // stored_end()
  };
  struct Place {
    std::size_t table = 0;
    std::int64_t id = 0;
  };

  [[nodiscard]] std::optional<Place> find(const Hash128& key) const;
  [[nodiscard]] std::optional<Row> load(const Place& place);
  void append(const Row& row);  // its key is not here yet
  void replace(const Place& place, const Row& row);

  // How many homes have to be taken out for the key that was just appended, so that there are never more than
  // twice `capacity` of them.
  [[nodiscard]] std::size_t due();
  // In a quiet moment: false where nothing is worth being taken out.
  [[nodiscard]] bool begin(Time now);
  // The keys of the next home; empty when there is none.
  [[nodiscard]] std::vector<Row> take();

  void load();  // from the file

 private:
  struct OfKey {
    using is_avalanching = void;
    std::size_t operator()(const Hash128& key) const noexcept { return key.low; }
  };
  struct Table {
    Table(Connection& connection, std::string_view name);
    Statement all, get, insert, update, clear;
    boost::unordered_flat_map<Hash128, std::int64_t, OfKey> ids;
    std::int64_t last = 0;                // the id
    Time first_end = stored_end(kNever);  // no key in it ends before
  };
  [[nodiscard]] Table& current() noexcept { return tables_[current_]; }
  [[nodiscard]] Table& other() noexcept { return tables_[1 - current_]; }
  void change_tables();
  void emptied();

  Counters& counters_;
  const std::size_t capacity_;
  std::array<Table, 2> tables_;
  std::size_t current_ = 0;  // where keys are appended
  // What is still to be taken out of the other: homes and ids, the next at the end.
  std::vector<std::pair<std::int64_t, std::int64_t>> leaving_;
};

}  // namespace waybill::store::sqlite
