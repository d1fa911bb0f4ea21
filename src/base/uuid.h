// UUIDs, version 7: ids that sort by the time they were made (RFC 9562, section 5.7).
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace waybill {

struct Uuid {
  std::array<std::uint8_t, 16> bytes{};  // network order

  // The first and the last eight bytes as numbers. Of two version 7 ids the later has the larger high, or the
  // same.
  [[nodiscard]] std::uint64_t high() const noexcept;
  [[nodiscard]] std::uint64_t low() const noexcept;
  [[nodiscard]] bool is_nil() const noexcept { return *this == Uuid{}; }
  friend auto operator<=>(const Uuid&, const Uuid&) = default;
};

// A new id for the time `now`: 48 bits of milliseconds, 12 bits of the fraction of the millisecond, 62 random
// bits. Each id a thread makes is greater than the one before, even when the clock stands still or steps
// back. Without an argument it reads the clock; neither form makes a system call, but for the first id of a
// thread, which is seeded by the system. Unique, not secret.
[[nodiscard]] Uuid uuid_v7(std::chrono::sys_time<std::chrono::nanoseconds> now) noexcept;
[[nodiscard]] Uuid uuid_v7() noexcept;

// The smallest version 7 id of that time: ids made later compare greater.
[[nodiscard]] std::uint64_t uuid_v7_high(std::chrono::sys_time<std::chrono::nanoseconds> time) noexcept;

// 36 characters, lower case.
[[nodiscard]] std::string to_string(const Uuid& id);
// The 36 characters of any version, in either case; nothing else.
[[nodiscard]] std::optional<Uuid> parse_uuid(std::string_view text) noexcept;

}  // namespace waybill
