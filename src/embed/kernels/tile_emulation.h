// A matrix tile unit in software, for tests on CPUs that have none. What it does is what the Intel SDM
// (volume 2: LDTILECFG, TILELOADD, TILESTORED, TILEZERO, TDPBUSD, TDPBF16PS) says of one on palette 1; what
// would fault there ends the program here.
//
// Known differences: no number stays no number, but its payload may differ; the scratch that TDPBF16PS keeps
// for even and odd places of a lane is added up in the order of the SDM's pseudocode, which says nothing of
// what silicon does with the last bit.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <immintrin.h>

#include "base/check.h"
#include "embed/kernels/kernels.h"
#include "embed/kernels/tile_config.h"

namespace waybill::embed::kernels {
namespace {

// Denormals are zeros, read and written, results are rounded to the nearest, whatever the thread has set.
class TileRounding {
 public:
  TileRounding() : saved_(_mm_getcsr()) {
    constexpr unsigned kFlushToZero = 0x8000;
    constexpr unsigned kDenormalsAreZero = 0x0040;
    constexpr unsigned kAllMasked = 0x1F80;
    _mm_setcsr(kFlushToZero | kDenormalsAreZero | kAllMasked);
  }
  TileRounding(const TileRounding&) = delete;
  TileRounding& operator=(const TileRounding&) = delete;
  ~TileRounding() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
};

class EmulatedTiles {
 public:
  explicit EmulatedTiles(const TileConfig& config) : config_(config) {
    WAYBILL_CHECK(config.palette == 1 && config.start_row == 0);
    for (const std::uint8_t byte : config.reserved) WAYBILL_CHECK(byte == 0);
    for (int i = 0; i < 16; ++i) {
      const bool used = config.rows[i] != 0;
      WAYBILL_CHECK(used == (config.row_bytes[i] != 0) && (!used || i < kTileCount));
      WAYBILL_CHECK(config.rows[i] <= kTileRows && config.row_bytes[i] <= kTileRowBytes);
    }
  }

  template <int kTile>
  void zero() {
    require_configured(kTile);
    tile_[kTile] = {};
  }

  template <int kTile>
  void load(const void* from, std::size_t stride) {
    zero<kTile>();
    for (std::size_t r = 0; r < config_.rows[kTile]; ++r) {
      std::memcpy(tile_[kTile].row[r], static_cast<const std::byte*>(from) + r * stride,
                  config_.row_bytes[kTile]);
    }
  }

  template <int kTile>
  void store(void* to, std::size_t stride) const {
    require_configured(kTile);
    for (std::size_t r = 0; r < config_.rows[kTile]; ++r) {
      std::memcpy(static_cast<std::byte*>(to) + r * stride, tile_[kTile].row[r], config_.row_bytes[kTile]);
    }
  }

  template <Element kElement, int kSum, int kInputs, int kWeights>
  void dot() {
    static_assert(kElement == Element::kBf16 || kElement == Element::kS8);
    static_assert(kSum != kInputs && kSum != kWeights && kInputs != kWeights);
    for (const int tile : {kSum, kInputs, kWeights}) require_configured(tile);
    WAYBILL_CHECK(config_.rows[kSum] == config_.rows[kInputs]);
    WAYBILL_CHECK(config_.row_bytes[kSum] == config_.row_bytes[kWeights]);
    WAYBILL_CHECK(config_.row_bytes[kInputs] == config_.rows[kWeights] * 4);
    if constexpr (kElement == Element::kBf16) {
      dot_bf16(tile_[kSum], tile_[kInputs], tile_[kWeights], config_.rows[kSum]);
    } else {
      dot_bytes(tile_[kSum], tile_[kInputs], tile_[kWeights], config_.rows[kSum]);
    }
  }

 private:
  struct alignas(64) Tile {
    std::byte row[kTileRows][kTileRowBytes] = {};
  };

  void require_configured(int tile) const { WAYBILL_CHECK(config_.rows[tile] != 0); }

  // What lies beyond a tile's rows and columns is zero, and so are its products: all of them are computed.
  static void dot_bytes(Tile& sum, const Tile& inputs, const Tile& weights, std::size_t rows) {
    for (std::size_t m = 0; m < rows; ++m) {
      std::uint32_t total[kTileColumns];  // wraps
      std::memcpy(total, sum.row[m], sizeof total);
      for (std::size_t k = 0; k < kTileLanes; ++k) {
        std::int32_t a[4];
        for (std::size_t i = 0; i < 4; ++i) a[i] = static_cast<std::uint8_t>(inputs.row[m][4 * k + i]);
        std::int32_t lanes[kTileColumns];
        std::memcpy(lanes, weights.row[k], sizeof lanes);
        for (std::size_t n = 0; n < kTileColumns; ++n) {
          std::int32_t products = 0;
          for (std::size_t i = 0; i < 4; ++i) {
            products += a[i] * static_cast<std::int8_t>(lanes[n] >> (8 * i));
          }
          total[n] += static_cast<std::uint32_t>(products);
        }
      }
      std::memcpy(sum.row[m], total, sizeof total);
    }
  }

  static float lower(std::uint32_t lane) { return __builtin_bit_cast(float, lane << 16); }
  static float upper(std::uint32_t lane) { return __builtin_bit_cast(float, lane & 0xFFFF0000U); }

  static void dot_bf16(Tile& sum, const Tile& inputs, const Tile& weights, std::size_t rows) {
    const TileRounding rounding;
    for (std::size_t m = 0; m < rows; ++m) {
      float even[kTileColumns] = {};
      float odd[kTileColumns] = {};
      for (std::size_t k = 0; k < kTileLanes; ++k) {
        std::uint32_t a;
        std::uint32_t lanes[kTileColumns];
        std::memcpy(&a, inputs.row[m] + 4 * k, sizeof a);
        std::memcpy(lanes, weights.row[k], sizeof lanes);
        for (std::size_t n = 0; n < kTileColumns; ++n) {
          even[n] = std::fma(lower(a), lower(lanes[n]), even[n]);
          odd[n] = std::fma(upper(a), upper(lanes[n]), odd[n]);
        }
      }
      float total[kTileColumns];
      std::memcpy(total, sum.row[m], sizeof total);
      for (std::size_t n = 0; n < kTileColumns; ++n) total[n] += even[n] + odd[n];
      std::memcpy(sum.row[m], total, sizeof total);
    }
  }

  TileConfig config_;
  Tile tile_[kTileCount];
};

}  // namespace
}  // namespace waybill::embed::kernels
