#include "store/sqlite/job_ids.h"

#include <algorithm>
#include <chrono>
#include <random>

#include <sys/random.h>

#include "store/sqlite/job_rows.h"

namespace waybill::store::sqlite {
namespace {

constexpr std::uint64_t kVersion = 0x7000, kFraction = 0xFFF;  // RFC 9562, section 5.7: ms, version, 12 bits

// The key of the next 1/4096 of a millisecond.
std::uint64_t after(std::uint64_t key) noexcept {
  const std::uint64_t ticks = ((key >> 16) << 12 | (key & kFraction)) + 1;
  return (ticks >> 12) << 16 | kVersion | (ticks & kFraction);
}

}  // namespace

Uuid JobIds::next(Time now) {
  const std::chrono::sys_time<std::chrono::nanoseconds> time{
      std::chrono::microseconds(std::max<Time>(now, 0))};
  last_ = std::max(uuid_v7_high(time), after(last_));
  const std::uint64_t low = (random() >> 2) | (std::uint64_t{1} << 63);  // the variant
  return id_of(static_cast<std::int64_t>(last_), static_cast<std::int64_t>(low));
}

std::uint64_t JobIds::random() {
  if (unused_ == 0) {
    // Up to 256 bytes come whole, or not at all.
    constexpr std::size_t kWords = 32;
    for (std::size_t i = 0; i < random_.size(); i += kWords) {
      if (::getrandom(random_.data() + i, kWords * sizeof(std::uint64_t), 0) >= 0) continue;
      std::random_device device;
      for (std::size_t j = i; j < i + kWords; ++j) random_[j] = (std::uint64_t{device()} << 32) | device();
    }
    unused_ = random_.size();
  }
  return random_[--unused_];
}

}  // namespace waybill::store::sqlite
