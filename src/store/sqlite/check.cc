// check_store(): that a store is whole.
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "store/sqlite/blob_files.h"
#include "store/sqlite/maintenance.h"
#include "store/sqlite/open_store.h"
#include "store/sqlite/schema.h"

namespace waybill::store::sqlite {
namespace {

// Each finds what must not be: the number of rows is the number of faults.
struct Rule {
  std::string_view broken;  // "{} ..."
  const char* sql;
};
static_assert(static_cast<int>(Counter::kKeys) == 4 && static_cast<int>(Counter::kResults) == 5 &&
              static_cast<int>(Counter::kBlobs) == 6 && static_cast<int>(Counter::kLeavingKeys) == 9 &&
              static_cast<int>(Counter::kNextHome) == 10);
constexpr std::array kRules = {
    Rule{"{} counters of jobs differ from a recount",
         "SELECT count(*) FROM (SELECT * FROM (SELECT queue, caller, state, count(*) AS jobs FROM jobs GROUP "
         "BY 1, 2, 3 "
         "EXCEPT SELECT queue, caller, state, jobs FROM depths) UNION ALL SELECT * FROM (SELECT queue, "
         "caller, state, "
         "jobs FROM depths WHERE jobs <> 0 EXCEPT SELECT queue, caller, state, count(*) FROM jobs GROUP BY "
         "1, 2, 3))"},
    Rule{"{} jobs have no request",
         "SELECT count(*) FROM jobs j WHERE NOT EXISTS (SELECT 1 FROM requests r WHERE r.key = j.key)"},
    Rule{"{} requests have no job",
         "SELECT count(*) FROM requests r WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.key = r.key)"},
    Rule{"{} jobs that have ended are not among the endings",
         "SELECT count(*) FROM jobs j WHERE j.state >= 6 AND NOT EXISTS (SELECT 1 FROM endings e WHERE "
         "e.number = "
         "j.result AND e.key = j.key AND e.state = j.state)"},
    Rule{"{} endings have no job",
         "SELECT count(*) FROM endings e WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.key = e.key AND "
         "j.result = "
         "e.number)"},
    Rule{"{} jobs with an answer have none",
         "SELECT count(*) FROM jobs j WHERE j.state IN (6, 7) AND NOT EXISTS (SELECT 1 FROM results x WHERE "
         "x.number = "
         "j.result)"},
    Rule{"{} answers have no job",
         "SELECT count(*) FROM results x WHERE NOT EXISTS (SELECT 1 FROM endings e WHERE e.number = "
         "x.number)"},
    Rule{"{} large bodies are counted wrongly",
         "WITH used AS (SELECT hash, count(*) AS uses FROM (SELECT blob AS hash FROM requests WHERE blob IS "
         "NOT NULL "
         "UNION ALL SELECT blob FROM results WHERE blob IS NOT NULL) GROUP BY hash) SELECT count(*) FROM "
         "(SELECT * FROM "
         "(SELECT hash, uses FROM blobs EXCEPT SELECT hash, uses FROM used) UNION ALL SELECT * FROM (SELECT "
         "hash, uses "
         "FROM used EXCEPT SELECT hash, uses FROM blobs))"},
    Rule{"{} deliveries have no job",
         "SELECT count(*) FROM deliveries d WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.key = d.job)"},
    Rule{"the number of idempotency keys is wrong by {}",
         "WITH leaving AS (SELECT coalesce((SELECT value FROM counters WHERE id = 9), 0) AS number, "
         "coalesce((SELECT value FROM counters WHERE id = 10), 0) AS home) "
         "SELECT abs((SELECT count(*) FROM keys) + "
         "(SELECT count(*) FROM recent_keys_0, leaving WHERE number <> 1 OR (low & -4) >= home) + "
         "(SELECT count(*) FROM recent_keys_1, leaving WHERE number <> 2 OR (low & -4) >= home) - "
         "coalesce((SELECT value FROM counters WHERE id = 4), 0))"},
    Rule{"the number of answers is wrong by {}",
         "SELECT abs((SELECT count(*) FROM results) - coalesce((SELECT value FROM counters WHERE id = 5), "
         "0))"},
    Rule{"the number of large bodies is wrong by {}",
         "SELECT abs((SELECT count(*) FROM blobs) - coalesce((SELECT value FROM counters WHERE id = 6), 0))"},
};

void check_structure(Connection& connection, StoreCheck& check) {
  Statement integrity(connection, "PRAGMA integrity_check");
  for (Rows rows = integrity.rows(); rows.next();) {
    if (rows.text(0) != "ok") check.problems.emplace_back(rows.text(0));
  }
}

// Files may be removed with their jobs while we look: what is missing counts only where it is still asked
// for.
void check_blobs(Connection& connection, const BlobFiles& files, StoreCheck& check,
                 const Progress& progress) {
  std::vector<Sha256> hashes;
  {
    Statement all(connection, "SELECT hash FROM blobs");
    for (Rows rows = all.rows(); rows.next();) hashes.push_back(hash_of(rows.text(0)));
  }
  connection.execute("COMMIT");
  check.blobs = hashes.size();
  Statement known(connection, "SELECT 1 FROM blobs WHERE hash = ?1");
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    report(progress, "checking large bodies", i, hashes.size());
    const Result<std::string> content = files.read(hashes[i]);
    if (content || !known.rows(Bytes{bytes_of(hashes[i])}).next()) continue;
    check.problems.push_back(content.error().message);
  }
}

}  // namespace

Result<StoreCheck> check_store(const std::filesystem::path& path, const Progress& progress) {
  auto opened = open_existing(path);
  if (!opened) return std::unexpected(std::move(opened.error()));
  Connection& connection = **opened;
  StoreCheck check;
  constexpr std::size_t kSteps = kRules.size() + 1;
  connection.execute("BEGIN");
  report(progress, "checking the structure", 0, kSteps);
  check_structure(connection, check);
  for (std::size_t i = 0; i < kRules.size() && !connection.failed(); ++i) {
    report(progress, "comparing tables", i + 1, kSteps);
    const std::int64_t faults = connection.number(kRules[i].sql);
    if (faults != 0) check.problems.push_back(fmt::format(fmt::runtime(kRules[i].broken), faults));
  }
  check.jobs = static_cast<std::uint64_t>(connection.number("SELECT count(*) FROM jobs"));
  check_blobs(connection, BlobFiles(path), check, progress);
  if (!connection.failed()) return check;
  if (!is_fatal(connection.code())) return std::unexpected(error_of(connection, "read from", path));
  check.problems.push_back(fmt::format("it cannot be read: {}", connection.message()));
  return check;
}

}  // namespace waybill::store::sqlite
