#include "embed/kernels/attention.h"
#include "embed/kernels/families.h"
#include "embed/kernels/linear.h"
#include "embed/kernels/rows.h"
#include "embed/kernels/vector_avx512.h"

namespace waybill::embed::kernels {

const RowKernels kAvx512Rows = {layer_norm<Avx512>, add_rows<Avx512>, attention<Avx512>, pool<Avx512>};

const LinearKernels kAvx512F32 = {layout_of<Avx512, DotF32<Avx512>>(1), prepare_f32,
                                  multiply<Avx512, DotF32<Avx512>>};

}  // namespace waybill::embed::kernels
