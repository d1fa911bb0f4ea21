#include "embed/kernels/bf16.h"
#include "embed/kernels/families.h"
#include "embed/kernels/linear.h"
#include "embed/kernels/vector_avx512.h"

namespace waybill::embed::kernels {

const LinearKernels kAvx512Bf16 = {layout_of<Avx512, DotBf16<Avx512>>(2), prepare_bf16<Avx512, ConvertToBf16>,
                                   multiply<Avx512, DotBf16<Avx512>>};

}  // namespace waybill::embed::kernels
