#include "store/sqlite/names.h"

namespace waybill::store::sqlite {

Names::Names(Connection& connection)
    : find_(connection, "SELECT id FROM names WHERE name = ?1"),
      insert_(connection, "INSERT INTO names (name) VALUES (?1)"),
      name_(connection, "SELECT name FROM names WHERE id = ?1"),
      connection_(connection) {}

void Names::remember(std::int64_t id, std::string_view name) {
  ids_.emplace(name, id);
  names_.emplace(id, name);
}

std::optional<std::int64_t> Names::find(std::string_view name) {
  if (const auto known = ids_.find(name); known != ids_.end()) return known->second;
  Rows rows = find_.rows(name);
  if (!rows.next()) return std::nullopt;
  const std::int64_t id = rows.integer(0);
  remember(id, name);
  return id;
}

std::int64_t Names::intern(std::string_view name) {
  if (const std::optional<std::int64_t> id = find(name)) return *id;
  insert_.run(name);
  const std::int64_t id = sqlite3_last_insert_rowid(connection_.handle());
  remember(id, name);
  return id;
}

const std::string& Names::name(std::int64_t id) {
  if (const auto known = names_.find(id); known != names_.end()) return known->second;
  Rows rows = name_.rows(id);
  if (rows.next()) {
    remember(id, rows.text(0));
    return names_.find(id)->second;
  }
  static const std::string kNone;  // of a connection that has failed
  return kNone;
}

void Names::forget() {
  ids_.clear();
  names_.clear();
}

}  // namespace waybill::store::sqlite
