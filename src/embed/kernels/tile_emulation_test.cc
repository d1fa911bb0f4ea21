// The tile unit in software against products worked out by hand, and what it refuses.
#include "embed/kernels/tile_emulation.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>

#include <gtest/gtest.h>

namespace waybill::embed::kernels {
namespace {

struct Size {
  std::size_t rows, row_bytes;
};

// Tiles 0, 1, ... of these sizes.
TileConfig config_of(std::initializer_list<Size> sizes) {
  TileConfig config;
  std::size_t tile = 0;
  for (const Size& size : sizes) {
    config.rows[tile] = static_cast<std::uint8_t>(size.rows);
    config.row_bytes[tile++] = static_cast<std::uint16_t>(size.row_bytes);
  }
  return config;
}

TEST(TileEmulationTest, LoadsAndStoresOnlyItsRowsAndColumns) {
  EmulatedTiles tiles(config_of({{2, 8}}));
  const std::uint8_t from[3][10] = {
      {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, {}};
  std::uint8_t to[3][12] = {};
  tiles.load<0>(from, sizeof from[0]);
  tiles.store<0>(to, sizeof to[0]);
  EXPECT_EQ(std::memcmp(to[0], from[0], 8), 0);
  EXPECT_EQ(std::memcmp(to[1], from[1], 8), 0);
  EXPECT_EQ(to[0][8], 0);
  EXPECT_EQ(to[2][0], 0);
}

TEST(TileEmulationTest, MultipliesUnsignedInputsBySignedWeights) {
  EmulatedTiles tiles(config_of({{1, 8}, {1, 8}, {2, 8}}));
  const std::uint8_t inputs[8] = {255, 1, 2, 3, 0, 0, 0, 200};
  // [lane][column][place]
  const std::int8_t weights[2][2][4] = {{{-128, 1, 0, 0}, {1, 1, 1, 1}}, {{5, 5, 5, 1}, {0, 0, 0, -1}}};
  std::int32_t sums[2] = {10, std::numeric_limits<std::int32_t>::max()};
  tiles.load<0>(sums, sizeof sums);
  tiles.load<1>(inputs, sizeof inputs);
  tiles.load<2>(weights, sizeof weights[0]);
  tiles.dot<Element::kS8, 0, 1, 2>();
  tiles.store<0>(sums, sizeof sums);
  EXPECT_EQ(sums[0], 10 + 255 * -128 + 1 + 200);
  EXPECT_EQ(sums[1], std::numeric_limits<std::int32_t>::min() + 261 - 200 - 1) << "wraps, does not saturate";
}

std::uint16_t bf16(float x) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16); }

// One row, one column, one lane: sum + a[0] * b[0] + a[1] * b[1].
float dot_bf16(float sum, float a0, float a1, float b0, float b1) {
  EmulatedTiles tiles(config_of({{1, 4}, {1, 4}, {1, 4}}));
  const std::uint16_t a[2] = {bf16(a0), bf16(a1)};
  const std::uint16_t b[2] = {bf16(b0), bf16(b1)};
  tiles.load<0>(&sum, sizeof sum);
  tiles.load<1>(a, sizeof a);
  tiles.load<2>(b, sizeof b);
  tiles.dot<Element::kBf16, 0, 1, 2>();
  tiles.store<0>(&sum, sizeof sum);
  return sum;
}

TEST(TileEmulationTest, MultipliesPairsOfBf16) {
  EXPECT_EQ(dot_bf16(0.5F, 2, 3, 5, -7), 0.5F + 10 - 21);
  EXPECT_EQ(dot_bf16(1, 0x1p-30F, 1, 1, -1), 0x1p-30F - 1 + 1) << "the pair is added up before the sum";
}

TEST(TileEmulationTest, TakesDenormalsForZeros) {
  EXPECT_EQ(dot_bf16(0, 0x1p-130F, 0, 0x1p100F, 0), 0.0F);
  EXPECT_EQ(dot_bf16(0, 0x1p-100F, 0, 0x1p-40F, 0), 0.0F);
  EXPECT_EQ(dot_bf16(0, 0x1p-126F, 0, 1, 0), 0x1p-126F);
}

TEST(TileEmulationTest, TakesEveryLaneOfEveryRow) {
  EmulatedTiles tiles(config_of({{16, 64}, {16, 64}, {16, 64}}));
  std::uint8_t inputs[16][64];
  std::int8_t weights[16][64];
  for (int r = 0; r < 16; ++r) {
    for (int c = 0; c < 64; ++c) {
      inputs[r][c] = static_cast<std::uint8_t>(37 * r + 11 * c);
      weights[r][c] = static_cast<std::int8_t>(53 * r + 29 * c);
    }
  }
  std::int32_t sums[16][16];
  tiles.zero<0>();
  tiles.load<1>(inputs, 64);
  tiles.load<2>(weights, 64);
  tiles.dot<Element::kS8, 0, 1, 2>();
  tiles.store<0>(sums, 64);
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 16; ++n) {
      std::int32_t expected = 0;
      for (int i = 0; i < 64; ++i) expected += inputs[m][i] * weights[i / 4][4 * n + i % 4];
      EXPECT_EQ(sums[m][n], expected);
    }
  }
}

TEST(TileEmulationDeathTest, EndsTheProgramWhereTheCpuWouldFault) {
  EXPECT_DEATH(EmulatedTiles(config_of({{17, 64}})), "rows");
  EXPECT_DEATH(EmulatedTiles(config_of({{16, 68}})), "row_bytes");
  EXPECT_DEATH(EmulatedTiles(config_of({{0, 64}})), "used");
  EmulatedTiles tiles(config_of({{16, 64}, {15, 64}, {16, 64}, {16, 60}}));
  EXPECT_DEATH((tiles.dot<Element::kS8, 0, 1, 2>()), "rows") << "sums and inputs differ in rows";
  EXPECT_DEATH((tiles.dot<Element::kS8, 0, 2, 3>()), "row_bytes") << "sums and weights differ in columns";
  EXPECT_DEATH((tiles.dot<Element::kS8, 0, 3, 2>()), "row_bytes") << "inputs and weights differ in lanes";
  EXPECT_DEATH((tiles.zero<4>()), "rows") << "not configured";
}

}  // namespace
}  // namespace waybill::embed::kernels
