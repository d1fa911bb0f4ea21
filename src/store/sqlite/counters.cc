#include "store/sqlite/counters.h"

namespace waybill::store::sqlite {

Counters::Counters(Connection& connection)
    : load_(connection, "SELECT id, value FROM counters"),
      save_(connection, "REPLACE INTO counters (id, value) VALUES (?1, ?2)") {}

void Counters::load() {
  values_.fill(0);
  for (Rows rows = load_.rows(); rows.next();) {
    const auto id = static_cast<std::size_t>(rows.integer(0));
    if (id < values_.size()) values_[id] = rows.integer(1);
  }
  saved_ = values_;
}

void Counters::flush() {
  for (std::size_t id = 0; id < values_.size(); ++id) {
    if (values_[id] == saved_[id]) continue;
    save_.run(id, values_[id]);
    saved_[id] = values_[id];
  }
}

std::int64_t Counters::add(Counter counter, std::int64_t by) noexcept {
  return values_[static_cast<std::size_t>(counter)] += by;
}

}  // namespace waybill::store::sqlite
