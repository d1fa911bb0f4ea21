#include "embed/kernels/bf16.h"
#include "embed/kernels/families.h"
#include "embed/kernels/integer.h"
#include "embed/kernels/tiles.h"
#include "embed/kernels/vector_avx512.h"

namespace waybill::embed::kernels {
namespace {

// The CPU's tiles, configured as long as this lives: in between nothing must call into code that uses them
// too, and afterwards the thread has no tile state that a context switch would have to save.
//
// In assembler, since g++'s intrinsics want the tile as a literal number, not as a template argument.
class AmxTiles {
 public:
  explicit AmxTiles(const TileConfig& config) { asm volatile("ldtilecfg %0" : : "m"(config)); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
  ~AmxTiles() { asm volatile("tilerelease"); }

  template <int kTile>
  [[gnu::always_inline]] void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <int kTile>
  [[gnu::always_inline]] void load(const void* from, std::size_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  [[gnu::always_inline]] void store(void* to, std::size_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(kTile) : "memory");
  }
  template <Element kElement, int kSum, int kInputs, int kWeights>
  [[gnu::always_inline]] void dot() {
    static_assert(kElement == Element::kBf16 || kElement == Element::kS8);
    if constexpr (kElement == Element::kBf16) {
      asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kInputs), "i"(kWeights));
    } else {
      asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kInputs), "i"(kWeights));
    }
  }
};

using Panel = TilePanel<Avx512>;
using Bf16 = DotBf16<Panel>;
using Bytes = DotBytes<Panel>;

}  // namespace

const LinearKernels kAmxBf16 = {tile_layout<Bf16>(), prepare_bf16<Panel, ConvertToBf16>,
                                multiply_tiled<Panel, Bf16, AmxTiles>};
const LinearKernels kAmxInt8 = {tile_layout<Bytes>(), prepare_int8<Panel, Element::kS8>,
                                multiply_tiled<Panel, Bytes, AmxTiles>};

}  // namespace waybill::embed::kernels
