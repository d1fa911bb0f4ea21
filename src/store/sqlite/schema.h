// The file: its tables, its version, and how it becomes one of today's version.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "store/job.h"
#include "store/sqlite/connection.h"

namespace waybill::store::sqlite {

inline constexpr std::int64_t kApplicationId = 0x57617962;  // "Wayb"
inline constexpr std::int64_t kSchemaVersion = 3;

// The version of the file, 0 of an empty one. Refuses a newer one (kUnsupported), and what is not a store
// (kCorrupt). Writes nothing.
[[nodiscard]] Result<std::int64_t> version_of(Connection& connection, const std::filesystem::path& path);
// Refuses all but today's, for who only reads.
[[nodiscard]] Status check_version(Connection& connection, const std::filesystem::path& path);
// Makes the tables, or brings those of an older version up to date.
[[nodiscard]] Status migrate(Connection& connection, const std::filesystem::path& path, std::int64_t version);

// A time that is not there. It takes as many bytes as one that is, and so a row need not move when it gets
// one.
inline constexpr std::int64_t kNoTime = INT64_MIN;
[[nodiscard]] constexpr std::int64_t stored_time(Time time) noexcept {
  return time == kNever ? kNoTime : time;
}
[[nodiscard]] constexpr Time loaded_time(std::int64_t stored) noexcept {
  return stored == kNoTime ? kNever : stored;
}

// 0 and 1 take no byte in a row, so states begin at 2.
[[nodiscard]] constexpr std::int64_t stored_state(State state) noexcept {
  return static_cast<std::int64_t>(state) + 2;
}
[[nodiscard]] constexpr State loaded_state(std::int64_t stored) noexcept {
  return static_cast<State>(stored - 2);
}

// What is known of a job without looking into other tables: jobs.flags.
enum Flag : std::uint32_t {
  kStarted = 1,       // the call of the current receive has begun
  kNotify = 2,        // requests.webhook is to be told
  kErrors = 4,        // there are rows in errors,
  kEvents = 8,        // in events,
  kDelivery = 16,     // in deliveries
  kRequestBlob = 32,  // the body, or the result's, is a file
  kResultBlob = 64,
};

// Rows of the table counters.
enum class Counter : std::uint8_t {
  kEpoch = 1,
  kEnding,
  kDelivery,
  kKeys,
  kResults,
  kBlobs,
  kBlobBytes,
  kMark,
  kLeavingKeys,  // RecentKeys: the table that is taken out of,
  kNextHome      // and where that goes on
};
inline constexpr std::size_t kCounters = 11;  // one more than the last

}  // namespace waybill::store::sqlite
