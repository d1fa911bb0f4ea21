// What is asked of a store, as SQL. Each within a transaction of the reader's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "store/sqlite/readers.h"
#include "store/store.h"

namespace waybill::store::sqlite {

// Bytes that are in the database, or a file.
struct Content {
  std::string bytes;
  std::optional<Sha256> blob;
};

[[nodiscard]] std::optional<Job> read_job(Reader& reader, const Uuid& id);
[[nodiscard]] std::optional<Content> read_body(Reader& reader, const Uuid& id);
struct StoredResult {
  JobResult result;  // without its body
  Content body;
};
[[nodiscard]] std::optional<StoredResult> read_result(Reader& reader, const Uuid& id);
[[nodiscard]] Events read_events(Reader& reader, const Uuid& id, std::uint64_t from, std::size_t max_bytes);
[[nodiscard]] std::vector<Job> read_list(Reader& reader, const JobFilter& filter);
[[nodiscard]] std::vector<Ending> read_endings(Reader& reader, std::uint64_t after, std::size_t limit);
[[nodiscard]] std::vector<Depth> read_depths(Reader& reader);
[[nodiscard]] std::vector<QueueState> read_queues(Reader& reader);
[[nodiscard]] std::vector<DeliveryRecord> read_deliveries(Reader& reader, const std::optional<Uuid>& job,
                                                          bool dead_only, std::size_t limit);
// But for the log.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> read_facts(Reader& reader,
                                                                          std::string_view prefix);
[[nodiscard]] StoreStats read_stats(Reader& reader);

}  // namespace waybill::store::sqlite
