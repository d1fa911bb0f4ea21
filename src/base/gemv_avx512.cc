#include "base/gemv_kernels.h"

namespace waybill {
namespace {

struct Avx512 {
  using Integers = __m512i;
  using Floats = __m512;
  static constexpr std::size_t kWords = 32, kFloats = 16;

  static Integers zero() { return _mm512_setzero_si512(); }
  static Integers load_words(const std::int16_t* p) { return _mm512_loadu_si512(p); }
  static Integers widen(const std::int8_t* p) {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Integers multiply_pairs(Integers a, Integers b) { return _mm512_madd_epi16(a, b); }
  static Integers add(Integers a, Integers b) { return _mm512_add_epi32(a, b); }
  static std::int32_t total(Integers v) { return _mm512_reduce_add_epi32(v); }

  static Floats zero_floats() { return _mm512_setzero_ps(); }
  static Floats broadcast(float x) { return _mm512_set1_ps(x); }
  static Floats load_halves(const std::uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static void store(float* p, Floats v) { _mm512_storeu_ps(p, v); }
};

}  // namespace

const GemvKernels kAvx512Gemv = {dot_bytes<Avx512>, sum_halves<Avx512>};

}  // namespace waybill
