#include "embed/kernels/attention.h"
#include "embed/kernels/families.h"
#include "embed/kernels/linear.h"
#include "embed/kernels/rows.h"
#include "embed/kernels/vector_avx2.h"

namespace waybill::embed::kernels {

const RowKernels kAvx2Rows = {layer_norm<Avx2>, add_rows<Avx2>, attention<Avx2>, pool<Avx2>};

const LinearKernels kAvx2F32 = {layout_of<Avx2, DotF32<Avx2>>(1), prepare_f32, multiply<Avx2, DotF32<Avx2>>};

}  // namespace waybill::embed::kernels
