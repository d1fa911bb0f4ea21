#include "embed/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embed/kernels/kernels.h"

namespace waybill::embed {
namespace {

using ::testing::ElementsAre;

CpuFeatures sapphire_rapids() {
  CpuFeatures cpu;
  cpu.avx2_fma = cpu.avx512 = cpu.avx512_vnni = cpu.avx512_bf16 = cpu.avx_vnni = true;
  cpu.amx_int8 = cpu.amx_bf16 = true;
  return cpu;
}

TEST(PrecisionTest, IsBf16WhereThereAreMatrixTiles) {
  EXPECT_EQ(default_precision(sapphire_rapids()), Precision::kBf16);
  EXPECT_THAT(available(Precision::kBf16, sapphire_rapids()), ElementsAre(Isa::kAmx, Isa::kAvx512Bf16));
}

TEST(PrecisionTest, DoesNotTakeTilesThatTheKernelOfTheSystemDidNotGrant) {
  CpuFeatures cpu = sapphire_rapids();
  cpu.amx_int8 = cpu.amx_bf16 = false;
  EXPECT_THAT(available(Precision::kBf16, cpu), ElementsAre(Isa::kAvx512Bf16));
  EXPECT_THAT(available(Precision::kInt8, cpu), ElementsAre(Isa::kAvx512Vnni, Isa::kAvxVnni, Isa::kAvx2));
  EXPECT_EQ(default_precision(cpu), Precision::kInt16);
}

TEST(PrecisionTest, OfTilesInBf16NeedsTheConversionToo) {
  CpuFeatures cpu = sapphire_rapids();
  cpu.avx512_bf16 = false;
  EXPECT_THAT(available(Precision::kBf16, cpu), ElementsAre());
  EXPECT_EQ(default_precision(cpu), Precision::kInt16);
}

TEST(PrecisionTest, DecidesInTheFastestOneAndAsksFloat32AboutTheCloseCalls) {
  CpuFeatures cpu = sapphire_rapids();
  EXPECT_EQ(decision_plan(cpu).first, Precision::kBf16);
  EXPECT_EQ(decision_plan(cpu).recheck, Precision::kF32);
  cpu.amx_int8 = cpu.amx_bf16 = false;
  EXPECT_EQ(decision_plan(cpu).first, Precision::kInt8);
  EXPECT_EQ(decision_plan(cpu).recheck, Precision::kF32);
  cpu.avx512_vnni = cpu.avx_vnni = false;
  EXPECT_EQ(decision_plan(cpu).first, Precision::kInt16);
  EXPECT_EQ(decision_plan(cpu).recheck, Precision::kF32);
}

TEST(PrecisionTest, HasKernelsForAllThatACpuCanOffer) {
  for (const Precision precision : kAllPrecisions) {
    for (const Isa isa : available(precision, sapphire_rapids())) {
      EXPECT_NE(kernels::find_kernels(precision, isa), nullptr)
          << to_string(precision) << " " << to_string(isa);
    }
  }
}

}  // namespace
}  // namespace waybill::embed
