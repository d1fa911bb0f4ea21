// Linear layers on matrix tiles, as templates over a vector type, the dot product that the tiles do (of which
// only the types are used here), and a tile unit (amx.cc: the CPU's; tile_emulation.h: one in software, for
// tests). Included only by the files that are compiled for one instruction set.
//
// A tile has 16 rows of 64 bytes. A tile of inputs is 16 prepared rows, 16 lanes of each; a tile of weights
// is 16 lanes of 16 columns of a panel; their product is 16 x 16 sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <immintrin.h>

#include "embed/kernels/kernels.h"
#include "embed/kernels/linear.h"
#include "embed/kernels/tile_config.h"

namespace waybill::embed::kernels {
namespace {

constexpr std::size_t kLaneBytes = 4;
// Two tiles of weights side by side. No wider: then the lanes of 384 inputs in bf16 leave half of a 48 KB L1
// cache to the inputs, and none of its sets is left out by the stride.
constexpr std::size_t kPanelTiles = 2;
constexpr std::size_t kTilePanelColumns = kPanelTiles * kTileColumns;

// A vector type whose panels are those of tiles.
template <class V>
struct TilePanel : V {
  static constexpr std::size_t kPanelVectors = kTilePanelColumns / V::kFloats;
};

// Which tile holds what: sums 0 to 3, inputs 4 and 5, weights 6 and 7.
constexpr int kInputTile = 4;
constexpr int kWeightTile = 6;

// Up to 16 rows, or what two tiles of rows hold, are configured as they are; of more rows, the last tile's
// missing ones are computed from what lies behind (kBatchRows) and not used.
inline TileConfig tile_config(std::size_t rows) {
  const std::size_t first = rows < kTileRows ? rows : kTileRows;
  const std::size_t second = rows <= kTileRows ? first : rows < 2 * kTileRows ? rows - kTileRows : kTileRows;
  TileConfig config;
  const auto set = [&config](int tile, std::size_t tile_rows) {
    config.rows[tile] = static_cast<std::uint8_t>(tile_rows);
    config.row_bytes[tile] = kTileRowBytes;
  };
  for (const int tile : {0, 1, kInputTile}) set(tile, first);
  for (const int tile : {2, 3, kInputTile + 1}) set(tile, second);
  for (const int tile : {kWeightTile, kWeightTile + 1}) set(tile, kTileRows);
  return config;
}

// body(0), body(1), ... with the numbers as constants.
template <std::size_t kCount, class Body>
[[gnu::always_inline]] inline void unrolled(Body body) {
  [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) __attribute__((always_inline)) {
    (body(std::integral_constant<std::size_t, kIndex>{}), ...);
  }(std::make_index_sequence<kCount>{});
}

// One multiply(). Blocks of 2 x 2 sums: four tile loads for four products, and a pair of weight tiles stays
// in the L1 cache for all rows. The last 16 rows or less of an odd number of row tiles take 1 x 4, over two
// panels, since one product is four times as long on its way as it takes to start the next.
template <class V, class Dot, class Tiles, Epilogue kEpilogue>
class TiledProduct {
 public:
  TiledProduct(const PackedLinear& linear, const std::byte* prepared, std::size_t rows, float* out,
               std::size_t stride)
      : linear_(linear),
        prepared_(prepared),
        rows_(rows),
        out_(out),
        stride_(stride),
        tiles_(tile_config(rows)) {}

  void run() {
    const std::size_t row_tiles = (rows_ + kTileRows - 1) / kTileRows;
    const std::size_t pairs_end = row_tiles / 2 * 2 * kTileRows;
    for (std::size_t p = 0; p < linear_.panel_count; p += 2) {
      const std::size_t panels = p + 1 < linear_.panel_count ? 2 : 1;
      const std::size_t steps = (row_tiles / 2 * panels + row_tiles % 2) * (linear_.lanes / kTileLanes);
      prefetch_ = reinterpret_cast<const char*>(panel(p + panels));
      lines_per_step_ = (panels * linear_.panel_bytes + steps * kCacheLine - 1) / (steps * kCacheLine);
      for (std::size_t i = 0; i < panels; ++i) {
        for (std::size_t r = 0; r < pairs_end; r += 2 * kTileRows) block<2, kPanelTiles>(p + i, r);
      }
      if (row_tiles % 2 == 0) continue;
      if (panels == 2) {
        block<1, 2 * kPanelTiles>(p, pairs_end);
      } else {
        block<1, kPanelTiles>(p, pairs_end);
      }
    }
  }

 private:
  const std::byte* panel(std::size_t p) const { return linear_.panels + p * linear_.panel_bytes; }

  // kRowTiles tiles of rows from `row` on by kColumnTiles tiles of columns from panel `p` on.
  template <std::size_t kRowTiles, std::size_t kColumnTiles>
  void block(std::size_t p, std::size_t row) {
    constexpr std::size_t kPanels = kColumnTiles / kPanelTiles;
    constexpr std::size_t kPanelSums = kTileRows * kTilePanelColumns;
    static_assert(kRowTiles * kColumnTiles <= static_cast<std::size_t>(kInputTile));
    alignas(kCacheLine) float sums[kRowTiles * kPanels * kPanelSums];
    multiply_block<kRowTiles, kColumnTiles>(p, row);
    unrolled<kRowTiles>([&](auto r) __attribute__((always_inline)) {
      unrolled<kColumnTiles>([&](auto c) __attribute__((always_inline)) {
        tiles_.template store<static_cast<int>(r * kColumnTiles + c)>(
            sums + (r + c / kPanelTiles) * kPanelSums + c % kPanelTiles * kTileColumns,
            kTilePanelColumns * sizeof(float));
      });
    });
    const std::size_t left = rows_ - row;
    const std::size_t rows = left < kRowTiles * kTileRows ? left : kRowTiles * kTileRows;
    const std::size_t lane_bytes = std::size_t{linear_.lanes} * kLaneBytes;
    for (std::size_t i = 0; i < kPanels; ++i) {
      finish_tile<V, Dot, kEpilogue>(
          reinterpret_cast<const float*>(panel(p + i) + lane_bytes * kTilePanelColumns), linear_.terms,
          sums + i * kPanelSums, rows, prepared_ + row * linear_.row_bytes + lane_bytes, linear_.row_bytes,
          out_ + row * stride_ + (p + i) * kTilePanelColumns, stride_);
    }
  }

  template <std::size_t kRowTiles, std::size_t kColumnTiles>
  [[gnu::always_inline]] void multiply_block(std::size_t p, std::size_t row) {
    constexpr std::size_t kPanelStride = kTilePanelColumns * kLaneBytes;
    const std::size_t row_bytes = linear_.row_bytes;
    const std::size_t panel_bytes = linear_.panel_bytes;
    const std::size_t lanes = linear_.lanes;
    const std::size_t lines_per_step = lines_per_step_;
    const char* prefetch = prefetch_;
    const std::byte* inputs = prepared_ + row * row_bytes;
    const std::byte* weights = panel(p);
    unrolled<kRowTiles * kColumnTiles>(
        [&](auto i) __attribute__((always_inline)) { tiles_.template zero<static_cast<int>(i)>(); });
    for (std::size_t lane = 0; lane < lanes; lane += kTileLanes) {
      for (std::size_t i = 0; i < lines_per_step; ++i, prefetch += kCacheLine) {
        _mm_prefetch(prefetch, _MM_HINT_T1);
      }
      unrolled<kRowTiles>([&](auto r) __attribute__((always_inline)) {
        tiles_.template load<kInputTile + static_cast<int>(r)>(inputs + r * kTileRows * row_bytes, row_bytes);
      });
      unrolled<kColumnTiles>([&](auto c) __attribute__((always_inline)) {
        constexpr int kWeights = kWeightTile + static_cast<int>(c % kPanelTiles);
        tiles_.template load<kWeights>(
            weights + c / kPanelTiles * panel_bytes + c % kPanelTiles * kTileRowBytes, kPanelStride);
        unrolled<kRowTiles>([&](auto r) __attribute__((always_inline)) {
          tiles_.template dot<Dot::kElement, static_cast<int>(r * kColumnTiles + c),
                              kInputTile + static_cast<int>(r), kWeights>();
        });
      });
      inputs += kTileRowBytes;
      weights += kTileLanes * kPanelStride;
    }
    prefetch_ = prefetch;
  }

  const PackedLinear& linear_;
  const std::byte* prepared_;
  std::size_t rows_;
  float* out_;
  std::size_t stride_;
  const char* prefetch_ = nullptr;
  std::size_t lines_per_step_ = 0;
  Tiles tiles_;
};

template <class V, class Dot, class Tiles>
void multiply_tiled(const PackedLinear& linear, const std::byte* prepared, std::size_t rows, float* out,
                    std::size_t stride, Epilogue epilogue) {
  if (rows == 0) return;
  switch (epilogue) {
    case Epilogue::kStore:
      return TiledProduct<V, Dot, Tiles, Epilogue::kStore>(linear, prepared, rows, out, stride).run();
    case Epilogue::kAdd:
      return TiledProduct<V, Dot, Tiles, Epilogue::kAdd>(linear, prepared, rows, out, stride).run();
    case Epilogue::kGelu:
      return TiledProduct<V, Dot, Tiles, Epilogue::kGelu>(linear, prepared, rows, out, stride).run();
    case Epilogue::kGeluTanh:
      return TiledProduct<V, Dot, Tiles, Epilogue::kGeluTanh>(linear, prepared, rows, out, stride).run();
    case Epilogue::kRelu:
      return TiledProduct<V, Dot, Tiles, Epilogue::kRelu>(linear, prepared, rows, out, stride).run();
  }
}

// Whole tiles of lanes.
template <class Dot>
constexpr Layout tile_layout() {
  return {Dot::kElement, kTilePanelColumns,
          static_cast<std::uint32_t>(kTileLanes * inputs_per_lane(Dot::kElement))};
}

}  // namespace
}  // namespace waybill::embed::kernels
