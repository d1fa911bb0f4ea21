#include "embed/kernels/attention.h"
#include "embed/kernels/families.h"
#include "embed/kernels/integer.h"
#include "embed/kernels/linear.h"
#include "embed/kernels/rows.h"
#include "embed/kernels/vector_avx2.h"

namespace waybill::embed::kernels {
namespace {

struct Avx2Words : Avx2 {
  static Int dot_words(Int sum, Int inputs, Int weights) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(inputs, weights));
  }
};
using F32 = DotF32<Avx2>;
using Words = DotWords<Avx2Words>;

}  // namespace

const RowKernels kAvx2Rows = {layer_norm<Avx2>, add_rows<Avx2>, attention<Avx2>, pool<Avx2>};

const LinearKernels kAvx2F32 = {layout_of<Avx2, F32>(1), prepare_f32, multiply<Avx2, F32>};
// Sums of four products of bytes do not fit maddubs' 16 bits; words are exact, at the speed of int16.
const LinearKernels kAvx2Int8 = {layout_of<Avx2, Words>(2), prepare_int8<Avx2, Element::kS16>,
                                 multiply<Avx2Words, Words>};
const LinearKernels kAvx2Int16 = {layout_of<Avx2, Words>(2), prepare_int16<Avx2>, multiply<Avx2Words, Words>};

}  // namespace waybill::embed::kernels
