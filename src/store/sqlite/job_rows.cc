#include "store/sqlite/job_rows.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "store/sqlite/schema.h"

namespace waybill::store::sqlite {

Uuid id_of(std::int64_t key, std::int64_t low) noexcept {
  static_assert(std::endian::native == std::endian::little);
  Uuid id;
  const std::uint64_t high_bytes = __builtin_bswap64(static_cast<std::uint64_t>(key));
  const std::uint64_t low_bytes = __builtin_bswap64(static_cast<std::uint64_t>(low));
  std::memcpy(id.bytes.data(), &high_bytes, sizeof high_bytes);
  std::memcpy(id.bytes.data() + 8, &low_bytes, sizeof low_bytes);
  return id;
}

JobRow row_of(const Rows& rows) {
  JobRow row;
  row.key = rows.integer(0);
  row.low = rows.integer(1);
  row.queue = rows.integer(2);
  row.caller = rows.integer(3);
  row.state = loaded_state(rows.integer(4));
  row.priority = rows.integer(5);
  row.due = loaded_time(rows.integer(6));
  row.expires = loaded_time(rows.integer(7));
  row.claimed = loaded_time(rows.integer(8));
  row.finished = loaded_time(rows.integer(9));
  row.result = loaded_time(rows.integer(10));
  row.receives = static_cast<std::uint32_t>(rows.integer(11));
  row.max_receives = static_cast<std::uint32_t>(rows.integer(12));
  row.in_doubt = static_cast<std::uint32_t>(rows.integer(13));
  row.fence = rows.integer(14);
  row.flags = static_cast<std::uint32_t>(rows.integer(15));
  row.owner = rows.integer(16);
  return row;
}

Job job_of(const JobRow& row, const Rows& rows, Names& names) {
  Job job;
  job.id = id_of(row.key, row.low);
  job.queue = names.name(row.queue);
  job.caller = names.name(row.caller);
  job.state = row.state;
  job.priority = static_cast<int>(row.priority);
  job.expires = row.expires;
  job.claimed = row.claimed;
  job.finished = row.finished;
  job.receives = row.receives;
  job.max_receives = row.max_receives;
  job.in_doubt = row.in_doubt;
  job.fence = static_cast<std::uint64_t>(row.fence);
  job.started = (row.flags & kStarted) != 0;
  job.result = static_cast<std::uint64_t>(row.result);
  job.created = loaded_time(rows.integer(17));
  job.run_after = loaded_time(rows.integer(18));
  job.endpoint = names.name(rows.integer(19));
  job.attributes = rows.text(20);
  job.metadata = rows.text(21);
  return job;
}

JobRows::JobRows(Connection& connection)
    : load_(connection, fmt::format("SELECT {} FROM jobs j WHERE j.key = ?1", kRowColumns)),
      insert_(connection,
              "INSERT INTO jobs (key, low, queue, caller, state, priority, due, expires, claimed, finished, "
              "result, "
              "receives, max_receives, in_doubt, fence, flags, owner) VALUES "
              "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)"),
      save_(connection,
            "UPDATE jobs SET state = ?2, due = ?3, expires = ?4, claimed = ?5, finished = ?6, result = ?7, "
            "receives = ?8, in_doubt = ?9, fence = ?10, flags = ?11, owner = ?12 WHERE key = ?1"),
      save_flags_(connection, "UPDATE jobs SET flags = ?2 WHERE key = ?1"),
      save_due_(connection, "UPDATE jobs SET due = ?2 WHERE key = ?1"),
      remove_(connection, "DELETE FROM jobs WHERE key = ?1") {}

std::optional<JobRow> JobRows::load(std::int64_t key) {
  Rows rows = load_.rows(key);
  if (!rows.next()) return std::nullopt;
  return row_of(rows);
}

std::optional<JobRow> JobRows::load(const Uuid& id) {
  std::optional<JobRow> row = load(key_of(id));
  if (row && row->low != low_of(id)) row.reset();
  return row;
}

void JobRows::insert(const JobRow& row) {
  insert_.run(row.key, row.low, row.queue, row.caller, stored_state(row.state), row.priority,
              stored_time(row.due), stored_time(row.expires), stored_time(row.claimed),
              stored_time(row.finished), stored_time(row.result), row.receives, row.max_receives,
              row.in_doubt, row.fence, row.flags, row.owner);
}

void JobRows::save(const JobRow& row) {
  save_.run(row.key, stored_state(row.state), stored_time(row.due), stored_time(row.expires),
            stored_time(row.claimed), stored_time(row.finished), stored_time(row.result), row.receives,
            row.in_doubt, row.fence, row.flags, row.owner);
}

void JobRows::save_flags(const JobRow& row) { save_flags_.run(row.key, row.flags); }
void JobRows::save_due(const JobRow& row) { save_due_.run(row.key, stored_time(row.due)); }
void JobRows::remove(const JobRow& row) { remove_.run(row.key); }

}  // namespace waybill::store::sqlite
