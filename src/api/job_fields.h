// The small fields of a job that is submitted, as JSON has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/job.h"

namespace waybill::api {

// All take the raw value; kInvalidInput names the field.

[[nodiscard]] Result<std::string> read_text(std::string_view field, std::string_view raw,
                                            std::size_t max_bytes);
[[nodiscard]] Result<std::int64_t> read_whole(std::string_view field, std::string_view raw, std::int64_t min,
                                              std::int64_t max);
// Seconds, more than none; at most `max`. Microseconds.
[[nodiscard]] Result<std::int64_t> read_seconds(std::string_view field, std::string_view raw, double max);
// Seconds since 1970, or "2026-11-30T12:00:00Z" (RFC 3339).
[[nodiscard]] Result<store::Time> read_time(std::string_view field, std::string_view raw);
// As OpenAI has it: at most 16 pairs of strings, keys of at most 64 and values of at most 512 characters.
// Nothing is returned but whether it is good; it is kept as it was written.
[[nodiscard]] Status check_metadata(std::string_view field, std::string_view raw);

// "2026-11-30T12:00:00.25+01:00" as microseconds since 1970.
[[nodiscard]] std::optional<store::Time> parse_rfc3339(std::string_view text) noexcept;

}  // namespace waybill::api
