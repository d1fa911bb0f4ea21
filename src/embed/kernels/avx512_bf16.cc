#include "embed/kernels/bf16.h"
#include "embed/kernels/families.h"
#include "embed/kernels/linear.h"
#include "embed/kernels/vector_avx512.h"

namespace waybill::embed::kernels {
namespace {

struct Avx512Bf16 : Avx512 {
  static Float dot_bf16(Float sum, Int inputs, Int weights) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(inputs), reinterpret_cast<__m512bh>(weights));
  }
};
using Bf16 = DotBf16<Avx512Bf16>;

}  // namespace

const LinearKernels kAvx512Bf16 = {layout_of<Avx512Bf16, Bf16>(2), prepare_bf16<Avx512, ConvertToBf16>,
                                   multiply<Avx512Bf16, Bf16>};

}  // namespace waybill::embed::kernels
