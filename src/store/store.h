// The durable store of jobs: an interface small enough that a database of another kind can stand behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/command.h"
#include "store/job.h"

namespace waybill::store {

struct Committed {
  std::vector<Reply> replies;  // of the commands, in their order
  std::vector<Change> changes;
  bool wrote = true;  // false: the transaction had nothing to write, and so the disk was not asked
};

struct JobFilter {
  std::optional<State> state;
  std::optional<std::string> queue, caller;
  std::optional<std::string> excluded_queue;  // where no queue is named: not the jobs of this one
  std::vector<std::pair<std::string, std::string>> metadata;  // all of them equal
  std::optional<Uuid> after;                                  // older than this one
  std::size_t limit = 20;
};

struct Depth {
  std::string queue, caller;
  State state = State::kQueued;
  std::uint64_t jobs = 0;
};

struct QueueState {
  std::string name;
  bool paused = false;
  Time oldest = kNever;  // when the oldest job that is queued was created
};

struct Ending {
  std::uint64_t number = 0;
  Uuid id;
  std::string queue, caller;
  State state = State::kCompleted;
};

struct Events {
  std::string text;        // as they were appended
  std::uint64_t next = 0;  // where those that follow begin
};

struct DeliveryRecord {
  std::uint64_t delivery = 0;
  Uuid job;
  std::string url;
  std::string state;  // "pending", "delivered", "dead"
  std::uint32_t attempts = 0;
  Time created = kNever, due = kNever;
  unsigned status = 0;  // of the last attempt
  std::string error;
};

struct StoreStats {
  std::uint64_t jobs = 0, keys = 0, results = 0;
  std::uint64_t deliveries = 0, dead_deliveries = 0;  // pending ones; dead ones
  std::uint64_t last_ending = 0;                      // the number of the latest, also when that job is gone
  std::uint64_t file_bytes = 0, log_bytes = 0, free_bytes = 0;  // the log is what is not merged yet
  std::uint64_t blobs = 0, blob_bytes = 0;
};

// Commands of one transaction follow each other as if each were alone. apply() is used by one thread at a
// time, and is all or nothing: after an error nothing of the batch has happened. Without commands it writes a
// mark: whether the disk takes anything at all; a transaction that changes nothing writes nothing. What was
// applied is seen by all that is applied and read after it, and is on disk (fsync) once a flush() that began
// later has returned: nobody may be told of it before. flush() runs beside all else; after an error of it,
// what was not flushed may or may not have happened. Once the disk is known to lose writes, everything fails
// with kStoreUnavailable, until another store is opened; where it was only full, the next may succeed.
//
// Reads are thread-safe, block, never wait for apply(), and see what was applied when they begin; they return
// when it is on disk.
class Store {
 public:
  virtual ~Store() = default;

  [[nodiscard]] virtual Result<Committed> apply(std::span<const Command> commands, Time now) = 0;
  [[nodiscard]] virtual Status flush() = 0;
  // Both, one after the other.
  [[nodiscard]] Result<Committed> commit(std::span<const Command> commands, Time now) {
    Result<Committed> committed = apply(commands, now);
    if (!committed) return committed;
    if (Status flushed = flush(); !flushed) return std::unexpected(std::move(flushed.error()));
    return committed;
  }

  [[nodiscard]] virtual Result<std::optional<Job>> find(const Uuid& id) = 0;
  [[nodiscard]] virtual Result<std::optional<std::string>> body(const Uuid& id) = 0;
  [[nodiscard]] virtual Result<std::optional<JobResult>> result(const Uuid& id) = 0;
  // From `from` on, 0 being the first; at most `max_bytes`, but one piece at least where there is one.
  [[nodiscard]] virtual Result<Events> events(const Uuid& id, std::uint64_t from, std::size_t max_bytes) = 0;
  // The latest first.
  [[nodiscard]] virtual Result<std::vector<Job>> list(const JobFilter& filter) = 0;
  // Those after `after`, in their order.
  [[nodiscard]] virtual Result<std::vector<Ending>> endings(std::uint64_t after, std::size_t limit) = 0;
  // From counters, whatever the number of jobs.
  [[nodiscard]] virtual Result<std::vector<Depth>> depths() = 0;
  [[nodiscard]] virtual Result<std::vector<QueueState>> queues() = 0;
  [[nodiscard]] virtual Result<std::vector<DeliveryRecord>> deliveries(std::optional<Uuid> job,
                                                                       bool dead_only, std::size_t limit) = 0;
  // Of Remember, by name: those that begin with `prefix`.
  [[nodiscard]] virtual Result<std::vector<std::pair<std::string, std::string>>> remembered(
      std::string_view prefix) = 0;
  [[nodiscard]] virtual Result<StoreStats> stats() = 0;
};

}  // namespace waybill::store
