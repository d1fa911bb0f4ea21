// What the CPU can do, asked once.
#pragma once

#include <string>

namespace waybill {

struct CpuFeatures {
  bool avx2_fma = false;     // AVX2, FMA and F16C: the least that Waybill runs on
  bool avx512 = false;       // F, BW, VL, DQ
  bool avx512_vnni = false;  // u8 x s8 and s16 x s16 dot products on 512 bits
  bool avx512_bf16 = false;
  bool avx_vnni = false;  // the same integer dot products on 256 bits, VEX-encoded
  bool amx_int8 = false;  // only true when the kernel granted the tile state to this process
  bool amx_bf16 = false;
};

// Detected at the first call (AMX asks the kernel for permission then); thread-safe.
[[nodiscard]] const CpuFeatures& cpu_features();

// The name the CPU gives itself, for reports.
[[nodiscard]] std::string cpu_name();

}  // namespace waybill
