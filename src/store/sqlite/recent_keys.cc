#include "store/sqlite/recent_keys.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "store/sqlite/schema.h"

namespace waybill::store::sqlite {
namespace {

constexpr std::int64_t kNone = 0;  // Counter::kLeavingKeys: else one more than the table's number
constexpr std::int64_t kFirstHome = INT64_MIN;

}  // namespace

RecentKeys::Table::Table(Connection& connection, std::string_view name)
    : all(connection, fmt::format("SELECT id, low, high, until FROM {}", name)),
      get(connection,
          fmt::format("SELECT low, high, payload_low, payload_high, job, until FROM {} WHERE id = ?1", name)),
      insert(
          connection,
          fmt::format("INSERT INTO {} (id, low, high, payload_low, payload_high, job, until) VALUES (?1, ?2, "
                      "?3, ?4, ?5, ?6, ?7)",
                      name)),
      update(
          connection,
          fmt::format("UPDATE {} SET payload_low = ?2, payload_high = ?3, job = ?4, until = ?5 WHERE id = ?1",
                      name)),
      clear(connection, fmt::format("DELETE FROM {}", name)) {}

RecentKeys::RecentKeys(Connection& connection, Counters& counters, std::size_t capacity)
    : counters_(counters),
      capacity_(std::max<std::size_t>(capacity, 1)),
      tables_{Table(connection, "recent_keys_0"), Table(connection, "recent_keys_1")} {}

void RecentKeys::load() {
  leaving_.clear();
  const std::int64_t leaving = counters_.get(Counter::kLeavingKeys);
  const std::int64_t from = counters_.get(Counter::kNextHome);
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    Table& table = tables_[i];
    table.ids = {};
    table.last = 0;
    table.first_end = stored_end(kNever);
    const bool leaves = leaving == static_cast<std::int64_t>(i) + 1;
    for (Rows rows = table.all.rows(); rows.next();) {
      const std::int64_t id = rows.integer(0);
      const Hash128 key{static_cast<std::uint64_t>(rows.integer(1)),
                        static_cast<std::uint64_t>(rows.integer(2))};
      table.last = std::max(table.last, id);
      if (leaves && home_of(key) < from) continue;
      table.ids.emplace(key, id);
      table.first_end = std::min(table.first_end, rows.integer(3));
      if (leaves) leaving_.emplace_back(home_of(key), id);
    }
  }
  std::ranges::sort(leaving_, std::greater<>());
  if (leaving != kNone) {
    current_ = static_cast<std::size_t>(leaving == 1);
  } else {
    current_ = static_cast<std::size_t>(tables_[0].ids.empty() && !tables_[1].ids.empty());
  }
}

std::optional<RecentKeys::Place> RecentKeys::find(const Hash128& key) const {
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    if (const auto found = tables_[i].ids.find(key); found != tables_[i].ids.end())
      return Place{i, found->second};
  }
  return std::nullopt;
}

std::optional<RecentKeys::Row> RecentKeys::load(const Place& place) {
  Rows rows = tables_[place.table].get.rows(place.id);
  if (!rows.next()) return std::nullopt;
  const auto unsigned_at = [&rows](int column) { return static_cast<std::uint64_t>(rows.integer(column)); };
  return Row{
      {unsigned_at(0), unsigned_at(1)}, {unsigned_at(2), unsigned_at(3)}, rows.integer(4), rows.integer(5)};
}

void RecentKeys::append(const Row& row) {
  Table& to = current();
  to.insert.run(++to.last, row.key.low, row.key.high, row.payload.low, row.payload.high, row.job, row.end);
  to.ids.emplace(row.key, to.last);
  to.first_end = std::min(to.first_end, row.end);
}

void RecentKeys::replace(const Place& place, const Row& row) {
  Table& in = tables_[place.table];
  in.update.run(place.id, row.payload.low, row.payload.high, row.job, row.end);
  in.first_end = std::min(in.first_end, row.end);
}

std::size_t RecentKeys::due() {
  const std::size_t here = current().ids.size();
  if (leaving_.empty()) {
    if (here >= capacity_) change_tables();
    return 0;
  }
  if (here >= capacity_) return leaving_.size();
  return here < capacity_ / 2 ? 0 : 2;
}

bool RecentKeys::begin(Time now) {
  if (!leaving_.empty()) return true;
  const Table& table = current();
  if (table.ids.empty() || (table.ids.size() < capacity_ / 4 && table.first_end > now)) return false;
  change_tables();
  return true;
}

void RecentKeys::change_tables() {
  const Table& full = current();
  leaving_.reserve(full.ids.size());
  for (const auto& [key, id] : full.ids) leaving_.emplace_back(home_of(key), id);
  std::ranges::sort(leaving_, std::greater<>());
  counters_.set(Counter::kLeavingKeys, static_cast<std::int64_t>(current_) + 1);
  counters_.set(Counter::kNextHome, kFirstHome);
  current_ = 1 - current_;
}

std::vector<RecentKeys::Row> RecentKeys::take() {
  std::vector<Row> taken;
  if (leaving_.empty()) return taken;
  for (const std::int64_t home = leaving_.back().first; !leaving_.empty() && leaving_.back().first == home;
       leaving_.pop_back()) {
    std::optional<Row> row = load({1 - current_, leaving_.back().second});
    if (!row) continue;  // of a connection that has failed
    other().ids.erase(row->key);
    taken.push_back(*row);
  }
  if (leaving_.empty()) {
    emptied();
  } else {
    counters_.set(Counter::kNextHome, leaving_.back().first);
  }
  return taken;
}

void RecentKeys::emptied() {
  Table& table = other();
  table.clear.run();
  table.ids = {};
  table.last = 0;
  table.first_end = stored_end(kNever);
  leaving_ = {};
  counters_.set(Counter::kLeavingKeys, kNone);
  counters_.set(Counter::kNextHome, 0);
}

}  // namespace waybill::store::sqlite
