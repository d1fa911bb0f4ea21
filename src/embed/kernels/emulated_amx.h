// The AMX kernels on a tile unit in software, for tests: the same layout of weights and rows, the same blocks
// of tiles, the same epilogues. Linked into tests only; slow.
#pragma once

#include "embed/kernels/kernels.h"

namespace waybill::embed::kernels {

// They take weights packed for Isa::kAmx. By the vectors that prepare rows and finish sums.
extern const LinearKernels kEmulatedAmxBf16Avx2;
extern const LinearKernels kEmulatedAmxBf16Avx512;
extern const LinearKernels kEmulatedAmxInt8Avx2;
extern const LinearKernels kEmulatedAmxInt8Avx512;

}  // namespace waybill::embed::kernels
