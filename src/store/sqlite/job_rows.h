// A job as the table `jobs` has it: what of it can change, in few bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/uuid.h"
#include "store/job.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/names.h"

namespace waybill::store::sqlite {

struct JobRow {
  std::int64_t key = 0, low = 0;  // the two halves of the id
  std::int64_t queue = 0, caller = 0;
  State state = State::kQueued;
  std::int64_t priority = 0;
  Time due = kNever;  // when something happens by itself
  Time expires = kNever, claimed = kNever, finished = kNever;
  std::int64_t result = 0;
  std::uint32_t receives = 0, max_receives = 0, in_doubt = 0;
  std::int64_t fence = 0;
  std::uint32_t flags = 0;
  std::int64_t owner = 0;  // of a lease: the opening of the store that it ends with; 0: none
};

[[nodiscard]] Uuid id_of(std::int64_t key, std::int64_t low) noexcept;
[[nodiscard]] inline std::int64_t key_of(const Uuid& id) noexcept {
  return static_cast<std::int64_t>(id.high());
}
[[nodiscard]] inline std::int64_t low_of(const Uuid& id) noexcept {
  return static_cast<std::int64_t>(id.low());
}

// Columns that row_of() reads, of `jobs j`, and those that job_of() reads in addition, of `requests r`.
inline constexpr std::string_view kRowColumns =
    "j.key, j.low, j.queue, j.caller, j.state, j.priority, j.due, j.expires, j.claimed, j.finished, "
    "j.result, "
    "j.receives, j.max_receives, j.in_doubt, j.fence, j.flags, j.owner";
inline constexpr std::string_view kRequestColumns =
    "r.created, r.run_after, r.endpoint, r.attributes, r.metadata";
inline constexpr int kAfterJobColumns = 22;  // where other columns begin

[[nodiscard]] JobRow row_of(const Rows& rows);
[[nodiscard]] Job job_of(const JobRow& row, const Rows& rows, Names& names);

class JobRows {
 public:
  explicit JobRows(Connection& connection);

  [[nodiscard]] std::optional<JobRow> load(std::int64_t key);
  // Of that id and no other.
  [[nodiscard]] std::optional<JobRow> load(const Uuid& id);
  void insert(const JobRow& row);
  void save(const JobRow& row);  // all that can change
  void save_flags(const JobRow& row);
  void save_due(const JobRow& row);
  void remove(const JobRow& row);

 private:
  Statement load_, insert_, save_, save_flags_, save_due_, remove_;
};

}  // namespace waybill::store::sqlite
