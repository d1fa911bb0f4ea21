// The tables that the files of each instruction set define, for kernels.cc to choose from.
#pragma once

#include "embed/kernels/kernels.h"

namespace waybill::embed::kernels {

extern const RowKernels kAvx2Rows;
extern const RowKernels kAvx512Rows;

extern const LinearKernels kAvx2F32;
extern const LinearKernels kAvx512F32;
extern const LinearKernels kAvx512Bf16;
extern const LinearKernels kAmxBf16;
extern const LinearKernels kAmxInt8;

extern const LinearKernels kAvx2Int16;
extern const LinearKernels kAvxVnniInt16;
extern const LinearKernels kAvx512VnniInt16;

extern const LinearKernels kAvx2Int8;
extern const LinearKernels kAvxVnniInt8;
extern const LinearKernels kAvx512VnniInt8;

}  // namespace waybill::embed::kernels
