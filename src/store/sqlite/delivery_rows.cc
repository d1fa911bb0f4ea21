#include "store/sqlite/delivery_rows.h"

#include <utility>

namespace waybill::store::sqlite {
namespace {

constexpr std::string_view kDisabled = "the address wants no more deliveries";

}  // namespace

DeliveryRows::DeliveryRows(Connection& connection, Counters& counters)
    : connection_(connection),
      counters_(counters),
      urls_(connection, "SELECT url FROM disabled_urls"),
      insert_(connection,
              "INSERT INTO deliveries (id, job, url, state, attempts, created, due, status, error) VALUES "
              "(?1, ?2, ?3, "
              "?4, 0, ?5, ?5, 0, ?6)"),
      due_(connection,
           "SELECT id, job, attempts, created, url FROM deliveries WHERE state = 0 AND due <= ?1 ORDER BY "
           "due LIMIT "
           "?2"),
      postpone_(connection, "UPDATE deliveries SET due = ?2 WHERE id = ?1"),
      settle_(connection,
              "UPDATE deliveries SET state = ?2, attempts = attempts + 1, due = ?3, status = ?4, error = ?5 "
              "WHERE id = "
              "?1 AND state = 0"),
      exists_(connection, "SELECT 1 FROM deliveries WHERE id = ?1"),
      latest_(connection, "SELECT id, url FROM deliveries WHERE job = ?1 ORDER BY id DESC LIMIT 1"),
      again_(connection,
             "UPDATE deliveries SET state = 0, attempts = 0, due = ?2, status = 0, error = '' WHERE id = ?1"),
      remove_(connection, "DELETE FROM deliveries WHERE job = ?1"),
      disable_(connection, "INSERT OR IGNORE INTO disabled_urls (url) VALUES (?1)"),
      kill_(connection, "UPDATE deliveries SET state = 2, error = ?2 WHERE state = 0 AND url = ?1"),
      enable_(connection, "DELETE FROM disabled_urls WHERE url = ?1") {}

void DeliveryRows::load() {
  disabled_.clear();
  for (Rows rows = urls_.rows(); rows.next();) disabled_.emplace(rows.text(0));
}

void DeliveryRows::add(std::int64_t job, std::string_view url, Time now) {
  const bool dead = disabled_.contains(url);
  insert_.run(counters_.add(Counter::kDelivery, 1), job, url,
              static_cast<int>(dead ? DeliveryState::kDead : DeliveryState::kPending), now,
              dead ? kDisabled : std::string_view());
}

std::vector<DeliveryRows::Due> DeliveryRows::claim(std::size_t max, Time now, Time until) {
  std::vector<Due> due;
  for (Rows rows = due_.rows(now, max); rows.next();) {
    due.push_back({rows.integer(0), rows.integer(1), static_cast<std::uint32_t>(rows.integer(2)),
                   rows.integer(3), std::string(rows.text(4))});
  }
  for (const Due& one : due) postpone_.run(one.id, until);
  return due;
}

bool DeliveryRows::settle(const SettleDelivery& settle) {
  DeliveryState to = DeliveryState::kPending;
  if (settle.to == SettleDelivery::To::kDelivered) to = DeliveryState::kDelivered;
  if (settle.to == SettleDelivery::To::kDead) to = DeliveryState::kDead;
  settle_.run(settle.delivery, static_cast<int>(to), settle.again_at, settle.status, settle.error);
  const bool settled = sqlite3_changes(connection_.handle()) == 1;
  if (!settle.disable_url.empty()) disable(settle.disable_url);
  return settled || exists_.rows(settle.delivery).next();
}

void DeliveryRows::disable(const std::string& url) {
  if (!disabled_.insert(url).second) return;
  disable_.run(url);
  kill_.run(url, kDisabled);
}

bool DeliveryRows::resend(std::int64_t job, Time now) {
  std::int64_t id = 0;
  std::string url;
  {
    Rows rows = latest_.rows(job);
    if (!rows.next()) return false;
    id = rows.integer(0);
    url = rows.text(1);
  }
  again_.run(id, now);
  if (disabled_.erase(url) != 0) enable_.run(url);
  return true;
}

void DeliveryRows::remove_of(std::int64_t job) { remove_.run(job); }

}  // namespace waybill::store::sqlite
