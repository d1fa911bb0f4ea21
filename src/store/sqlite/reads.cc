#include "store/sqlite/reads.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "store/sqlite/blob_files.h"
#include "store/sqlite/delivery_rows.h"
#include "store/sqlite/job_rows.h"
#include "store/sqlite/schema.h"

namespace waybill::store::sqlite {
namespace {

constexpr std::array<std::string_view, 3> kDeliveryStates = {"pending", "delivered", "dead"};

Content content_of(const Rows& rows, int blob_column) {
  if (!rows.is_null(blob_column)) return {"", hash_of(rows.text(blob_column))};
  return {std::string(rows.text(blob_column + 1)), std::nullopt};
}

std::vector<AttemptError> read_errors(Reader& reader, std::int64_t key) {
  std::vector<AttemptError> errors;
  Statement& find = reader.statement(
      "SELECT receive, started, ended, code, message, status, in_doubt FROM errors WHERE key = ?1 ORDER BY "
      "number");
  for (Rows rows = find.rows(key); rows.next();) {
    errors.push_back({static_cast<std::uint32_t>(rows.integer(0)), rows.integer(1), rows.integer(2),
                      std::string(rows.text(3)), std::string(rows.text(4)),
                      static_cast<unsigned>(rows.integer(5)), rows.integer(6) != 0});
  }
  return errors;
}

}  // namespace

std::optional<Job> read_job(Reader& reader, const Uuid& id) {
  static const std::string kSql = fmt::format(
      "SELECT {}, {} FROM jobs j JOIN requests r ON r.key = j.key WHERE j.key = ?1 AND j.low = ?2",
      kRowColumns, kRequestColumns);
  std::optional<Job> job;
  bool failed = false;
  if (Rows rows = reader.statement(kSql).rows(key_of(id), low_of(id)); rows.next()) {
    const JobRow row = row_of(rows);
    job = job_of(row, rows, reader.names());
    failed = (row.flags & kErrors) != 0;
  }
  if (failed) job->errors = read_errors(reader, key_of(id));
  return job;
}

std::optional<Content> read_body(Reader& reader, const Uuid& id) {
  Statement& find = reader.statement(
      "SELECT r.blob, r.body FROM jobs j JOIN requests r ON r.key = j.key WHERE j.key = ?1 AND j.low = ?2");
  Rows rows = find.rows(key_of(id), low_of(id));
  if (!rows.next()) return std::nullopt;
  return content_of(rows, 0);
}

std::optional<StoredResult> read_result(Reader& reader, const Uuid& id) {
  Statement& find = reader.statement(
      "SELECT x.status, x.content_type, x.facts, x.blob, x.body FROM jobs j JOIN results x ON x.number = "
      "j.result "
      "WHERE j.key = ?1 AND j.low = ?2");
  Rows rows = find.rows(key_of(id), low_of(id));
  if (!rows.next()) return std::nullopt;
  return StoredResult{
      {static_cast<unsigned>(rows.integer(0)), std::string(rows.text(1)), "", std::string(rows.text(2))},
      content_of(rows, 3)};
}

Events read_events(Reader& reader, const Uuid& id, std::uint64_t from, std::size_t max_bytes) {
  Events events;
  events.next = from;
  if (!reader.statement("SELECT 1 FROM jobs WHERE key = ?1 AND low = ?2")
           .rows(key_of(id), low_of(id))
           .next()) {
    return events;
  }
  // The piece that `from` lies in, and those after it.
  Statement& find = reader.statement(
      "SELECT start, text FROM events WHERE key = ?1 AND start >= coalesce((SELECT max(start) FROM events "
      "WHERE key = "
      "?1 AND start <= ?2), 0) ORDER BY start");
  for (Rows rows = find.rows(key_of(id), from); rows.next();) {
    std::string_view text = rows.text(1);
    const auto start = static_cast<std::uint64_t>(rows.integer(0));
    if (start + text.size() <= events.next) continue;
    text.remove_prefix(events.next - start);
    if (!events.text.empty() && events.text.size() + text.size() > max_bytes) break;
    events.text += text;
    events.next += text.size();
  }
  return events;
}

std::vector<Job> read_list(Reader& reader, const JobFilter& filter) {
  std::vector<Job> jobs;
  std::optional<std::int64_t> queue, caller, state;
  if (filter.queue && !(queue = reader.names().find(*filter.queue))) return jobs;
  if (filter.caller && !(caller = reader.names().find(*filter.caller))) return jobs;
  if (filter.state) state = stored_state(*filter.state);
  // A queue of which the store has never heard excludes nothing.
  const bool excludes =
      !queue && filter.excluded_queue && (queue = reader.names().find(*filter.excluded_queue));
  // There are no more than the counters say: the search ends when it has found them all.
  std::int64_t most = 0;
  {
    Statement& count = reader.statement(fmt::format(
        "SELECT sum(jobs) FROM depths WHERE (?1 IS NULL OR queue {} ?1) AND (?2 IS NULL OR caller = ?2) AND "
        "(?3 IS NULL OR state = ?3)",
        excludes ? "<>" : "="));
    Rows rows = count.rows(queue, caller, state);
    if (rows.next()) most = rows.integer(0);
  }
  most = std::min(most, static_cast<std::int64_t>(std::min<std::size_t>(filter.limit, 1U << 30)));
  if (most == 0) return jobs;

  std::string sql = fmt::format("SELECT {}, {} FROM jobs j JOIN requests r ON r.key = j.key WHERE j.key < ?1",
                                kRowColumns, kRequestColumns);
  const bool unfulfilled =
      state && *state != stored_state(State::kCompleted) && *state >= stored_state(State::kHeld);
  if (unfulfilled) sql += " AND j.state IN (5, 7, 8, 9, 10)";  // as the index says it
  sql += state ? " AND j.state = ?4" : " AND ?4 IS NULL";
  sql += !queue ? " AND ?2 IS NULL" : excludes ? " AND j.queue <> ?2" : " AND j.queue = ?2";
  sql += caller ? " AND j.caller = ?3" : " AND ?3 IS NULL";
  for (std::size_t i = 0; i < filter.metadata.size(); ++i) {
    sql +=
        fmt::format(" AND EXISTS (SELECT 1 FROM json_each(r.metadata) m WHERE m.key = ?{} AND m.value = ?{})",
                    6 + 2 * i, 7 + 2 * i);
  }
  sql += " ORDER BY j.key DESC LIMIT ?5";
  const std::int64_t before = filter.after ? key_of(*filter.after) : std::numeric_limits<std::int64_t>::max();
  Statement& find = reader.statement(sql);
  std::vector<std::string_view> metadata;
  for (const auto& [name, value] : filter.metadata) metadata.insert(metadata.end(), {name, value});
  std::vector<std::size_t> failed;
  for (Rows rows = find.rows(before, queue, caller, state, most, metadata); rows.next();) {
    const JobRow row = row_of(rows);
    if ((row.flags & kErrors) != 0) failed.push_back(jobs.size());
    jobs.push_back(job_of(row, rows, reader.names()));
  }
  for (const std::size_t each : failed) jobs[each].errors = read_errors(reader, key_of(jobs[each].id));
  return jobs;
}

std::vector<Ending> read_endings(Reader& reader, std::uint64_t after, std::size_t limit) {
  std::vector<Ending> endings;
  Statement& find = reader.statement(
      "SELECT number, key, low, queue, caller, state FROM endings WHERE number > ?1 ORDER BY number LIMIT "
      "?2");
  for (Rows rows = find.rows(after, limit); rows.next();) {
    endings.push_back({static_cast<std::uint64_t>(rows.integer(0)), id_of(rows.integer(1), rows.integer(2)),
                       reader.names().name(rows.integer(3)), reader.names().name(rows.integer(4)),
                       loaded_state(rows.integer(5))});
  }
  return endings;
}

std::vector<Depth> read_depths(Reader& reader) {
  std::vector<Depth> depths;
  Statement& find = reader.statement("SELECT queue, caller, state, jobs FROM depths WHERE jobs <> 0");
  for (Rows rows = find.rows(); rows.next();) {
    depths.push_back({reader.names().name(rows.integer(0)), reader.names().name(rows.integer(1)),
                      loaded_state(rows.integer(2)), static_cast<std::uint64_t>(rows.integer(3))});
  }
  return depths;
}

std::vector<QueueState> read_queues(Reader& reader) {
  std::vector<QueueState> queues;
  {
    Statement& find = reader.statement(
        "SELECT d.queue, EXISTS (SELECT 1 FROM paused_queues p WHERE p.queue = d.queue) FROM (SELECT queue "
        "FROM depths "
        "UNION SELECT queue FROM paused_queues) d");
    for (Rows rows = find.rows(); rows.next();) {
      queues.push_back({reader.names().name(rows.integer(0)), rows.integer(1) != 0, kNever});
    }
  }
  // The oldest of each caller and priority is the first of its kind in the index; all of them are few.
  for (QueueState& queue : queues) {
    const std::optional<std::int64_t> id = reader.names().find(queue.name);
    std::vector<std::int64_t> callers;
    {
      Statement& find =
          reader.statement("SELECT caller FROM depths WHERE queue = ?1 AND state = 2 AND jobs <> 0");
      for (Rows rows = find.rows(id); rows.next();) callers.push_back(rows.integer(0));
    }
    Statement& first = reader.statement(
        "SELECT key, priority FROM jobs WHERE state = 2 AND queue = ?1 AND caller = ?2 AND priority < ?3 "
        "ORDER BY "
        "priority DESC, key LIMIT 1");
    std::int64_t oldest = std::numeric_limits<std::int64_t>::max();
    for (const std::int64_t caller : callers) {
      for (std::int64_t priority = std::numeric_limits<std::int64_t>::max();;) {
        Rows rows = first.rows(id, caller, priority);
        if (!rows.next()) break;
        oldest = std::min(oldest, rows.integer(0));
        priority = rows.integer(1);
      }
    }
    if (Rows rows = reader.statement("SELECT created FROM requests WHERE key = ?1").rows(oldest);
        rows.next()) {
      queue.oldest = rows.integer(0);
    }
  }
  return queues;
}

std::vector<DeliveryRecord> read_deliveries(Reader& reader, const std::optional<Uuid>& job, bool dead_only,
                                            std::size_t limit) {
  std::vector<DeliveryRecord> records;
  std::string sql =
      "SELECT d.id, j.key, j.low, d.url, d.state, d.attempts, d.created, d.due, d.status, d.error FROM "
      "deliveries d JOIN "
      "jobs j ON j.key = d.job WHERE ";
  sql += dead_only ? "d.state = 2" : "1";
  sql += job ? " AND d.job = ?1 AND j.low = ?2" : " AND ?1 IS NULL AND ?2 IS NULL";
  sql += " ORDER BY d.id DESC LIMIT ?3";
  std::optional<std::int64_t> key, low;
  if (job) {
    key = key_of(*job);
    low = low_of(*job);
  }
  for (Rows rows = reader.statement(sql).rows(key, low, limit); rows.next();) {
    DeliveryRecord& record = records.emplace_back();
    record.delivery = static_cast<std::uint64_t>(rows.integer(0));
    record.job = id_of(rows.integer(1), rows.integer(2));
    record.url = rows.text(3);
    const auto state = static_cast<std::size_t>(rows.integer(4));
    record.state = kDeliveryStates[std::min(state, kDeliveryStates.size() - 1)];
    record.attempts = static_cast<std::uint32_t>(rows.integer(5));
    record.created = rows.integer(6);
    record.due = state == static_cast<std::size_t>(DeliveryState::kPending) ? rows.integer(7) : kNever;
    record.status = static_cast<unsigned>(rows.integer(8));
    record.error = rows.text(9);
  }
  return records;
}

std::vector<std::pair<std::string, std::string>> read_facts(Reader& reader, std::string_view prefix) {
  std::vector<std::pair<std::string, std::string>> facts;
  Statement& find = reader.statement(
      "SELECT name, text FROM facts WHERE name >= ?1 AND substr(name, 1, length(?1)) = ?1 ORDER BY name");
  for (Rows rows = find.rows(prefix); rows.next();) facts.emplace_back(rows.text(0), rows.text(1));
  return facts;
}

StoreStats read_stats(Reader& reader) {
  StoreStats stats;
  if (Rows rows = reader.statement("SELECT sum(jobs) FROM depths").rows(); rows.next()) {
    stats.jobs = static_cast<std::uint64_t>(rows.integer(0));
  }
  for (Rows rows = reader.statement("SELECT id, value FROM counters").rows(); rows.next();) {
    const auto value = static_cast<std::uint64_t>(rows.integer(1));
    switch (static_cast<Counter>(rows.integer(0))) {
      case Counter::kKeys:
        stats.keys = value;
        break;
      case Counter::kResults:
        stats.results = value;
        break;
      case Counter::kEnding:
        stats.last_ending = value;
        break;
      case Counter::kBlobs:
        stats.blobs = value;
        break;
      case Counter::kBlobBytes:
        stats.blob_bytes = value;
        break;
      default:
        break;
    }
  }
  const auto count = [&reader](const std::string& query) -> std::uint64_t {
    Rows rows = reader.statement(query).rows();
    return rows.next() ? static_cast<std::uint64_t>(rows.integer(0)) : 0;
  };
  stats.deliveries = count("SELECT count(*) FROM deliveries WHERE state = 0");
  stats.dead_deliveries = count("SELECT count(*) FROM deliveries WHERE state = 2");
  Connection& connection = reader.connection();
  const auto page_bytes = static_cast<std::uint64_t>(connection.number("PRAGMA page_size"));
  stats.file_bytes = static_cast<std::uint64_t>(connection.number("PRAGMA page_count")) * page_bytes;
  stats.free_bytes = static_cast<std::uint64_t>(connection.number("PRAGMA freelist_count")) * page_bytes;
  return stats;
}

}  // namespace waybill::store::sqlite
