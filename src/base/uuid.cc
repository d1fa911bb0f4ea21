#include "base/uuid.h"

#include <bit>
#include <cstring>
#include <random>

namespace waybill {
namespace {

constexpr std::uint64_t kRandomBits = (std::uint64_t{1} << 62) - 1;

// splitmix64: more than random enough for ids that are not secret, and a few instructions.
class Generator {
 public:
  std::uint64_t next() noexcept {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }

 private:
  static std::uint64_t seed() noexcept {
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
  }
  std::uint64_t state_ = seed();
};

// The time as 60 bits: milliseconds, then 1/4096 of one. RFC 9562, section 6.2, method 3.
std::uint64_t ticks_of(std::chrono::sys_time<std::chrono::nanoseconds> time) noexcept {
  const auto ns = static_cast<std::uint64_t>(time.time_since_epoch().count());
  constexpr std::uint64_t kNsPerMs = 1'000'000;
  return ((ns / kNsPerMs) << 12) | (((ns % kNsPerMs) << 12) / kNsPerMs);
}

constexpr std::uint64_t with_version(std::uint64_t ticks) noexcept {
  return ((ticks >> 12) << 16) | 0x7000U | (ticks & 0xFFFU);
}

void store(std::uint8_t* to, std::uint64_t value) noexcept {
  static_assert(std::endian::native == std::endian::little);
  value = __builtin_bswap64(value);
  std::memcpy(to, &value, sizeof value);
}

std::uint64_t load(const std::uint8_t* from) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return __builtin_bswap64(value);
}

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

constexpr bool is_dash(std::size_t i) noexcept { return i == 8 || i == 13 || i == 18 || i == 23; }

}  // namespace

std::uint64_t Uuid::high() const noexcept { return load(bytes.data()); }
std::uint64_t Uuid::low() const noexcept { return load(bytes.data() + 8); }

Uuid uuid_v7(std::chrono::sys_time<std::chrono::nanoseconds> now) noexcept {
  struct State {
    Generator random;
    std::uint64_t ticks = 0;
    std::uint64_t low = 0;
  };
  thread_local State state;

  const std::uint64_t ticks = ticks_of(now);
  const std::uint64_t random = state.random.next();
  if (ticks > state.ticks) {
    state.ticks = ticks;
    state.low = random & kRandomBits;
  } else {
    // The same tick, or the clock went back: count on from the last id by a random step.
    state.low += 1 + (random >> 32);
    if (state.low > kRandomBits) {
      ++state.ticks;
      state.low &= kRandomBits;
    }
  }
  Uuid id;
  store(id.bytes.data(), with_version(state.ticks));
  store(id.bytes.data() + 8, state.low | (std::uint64_t{1} << 63));
  return id;
}

Uuid uuid_v7() noexcept { return uuid_v7(std::chrono::system_clock::now()); }

std::uint64_t uuid_v7_high(std::chrono::sys_time<std::chrono::nanoseconds> time) noexcept {
  return with_version(ticks_of(time));
}

std::string to_string(const Uuid& id) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(36, '-');
  std::size_t byte = 0;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    if (is_dash(i)) ++i;
    text[i] = kDigits[id.bytes[byte] >> 4];
    text[i + 1] = kDigits[id.bytes[byte] & 15];
    ++byte;
  }
  return text;
}

std::optional<Uuid> parse_uuid(std::string_view text) noexcept {
  if (text.size() != 36) return std::nullopt;
  Uuid id;
  std::size_t byte = 0;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    if (is_dash(i)) {
      if (text[i] != '-') return std::nullopt;
      ++i;
    }
    const int high = hex_value(text[i]);
    const int low = hex_value(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    id.bytes[byte++] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return id;
}

}  // namespace waybill
