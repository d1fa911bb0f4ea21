// The ids of new jobs: UUIDv7 whose first eight bytes are a key of their own.
#pragma once

#include <array>
#include <cstdint>

#include "base/uuid.h"
#include "store/job.h"

namespace waybill::store::sqlite {

// Strictly rising, also when the clock stands still or steps back, and when another process goes on with the
// file. The last eight bytes are random enough that nobody guesses them.
class JobIds {
 public:
  // The largest key so far; 0 where there is none.
  void continue_after(std::int64_t key) noexcept { last_ = static_cast<std::uint64_t>(key); }
  [[nodiscard]] Uuid next(Time now);

 private:
  [[nodiscard]] std::uint64_t random();

  std::uint64_t last_ = 0;
  std::array<std::uint64_t, 512> random_{};
  std::size_t unused_ = 0;  // of random_
};

}  // namespace waybill::store::sqlite
