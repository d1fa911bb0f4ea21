// The shape of matrix tiles (AMX), for the tile units and what is built on them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace waybill::embed::kernels {

inline constexpr int kTileCount = 8;
inline constexpr std::size_t kTileRows = 16;
inline constexpr std::size_t kTileRowBytes = 64;
inline constexpr std::size_t kTileColumns = kTileRowBytes / 4;  // of sums
inline constexpr std::size_t kTileLanes = kTileRowBytes / 4;    // four-byte lanes of inputs in a row

// The operand of LDTILECFG (Intel SDM, volume 1, "Programming with Intel Advanced Matrix Extensions", palette
// 1).
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

}  // namespace waybill::embed::kernels
