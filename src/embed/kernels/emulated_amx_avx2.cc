#include "embed/kernels/bf16.h"
#include "embed/kernels/emulated_amx.h"
#include "embed/kernels/integer.h"
#include "embed/kernels/tile_emulation.h"
#include "embed/kernels/tiles.h"
#include "embed/kernels/vector_avx2.h"

namespace waybill::embed::kernels {
namespace {

using Panel = TilePanel<Avx2>;
using Bf16 = DotBf16<Panel>;
using Bytes = DotBytes<Panel>;

}  // namespace

const LinearKernels kEmulatedAmxBf16Avx2 = {tile_layout<Bf16>(), prepare_bf16<Panel, RoundToBf16<Panel>>,
                                            multiply_tiled<Panel, Bf16, EmulatedTiles>};
const LinearKernels kEmulatedAmxInt8Avx2 = {tile_layout<Bytes>(), prepare_int8<Panel, Element::kS8>,
                                            multiply_tiled<Panel, Bytes, EmulatedTiles>};

}  // namespace waybill::embed::kernels
