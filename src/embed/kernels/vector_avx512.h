// 512-bit vectors for the templates beside this file. Included only by files compiled with AVX-512.
#pragma once

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

namespace waybill::embed::kernels {
namespace {

struct Avx512 {
  using Float = __m512;
  using Int = __m512i;
  static constexpr std::size_t kFloats = 16;
  static constexpr std::size_t kPanelVectors =
      4;  // 6 x 4 sums, 4 weights and a broadcast fill 29 of 32 registers
  static constexpr std::size_t kTileRows = 6;

  static Float load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Float v) { _mm512_storeu_ps(p, v); }
  static Float broadcast(float v) { return _mm512_set1_ps(v); }
  static Float zero() { return _mm512_setzero_ps(); }
  static Float add(Float a, Float b) { return _mm512_add_ps(a, b); }
  static Float sub(Float a, Float b) { return _mm512_sub_ps(a, b); }
  static Float mul(Float a, Float b) { return _mm512_mul_ps(a, b); }
  static Float div(Float a, Float b) { return _mm512_div_ps(a, b); }
  static Float min(Float a, Float b) { return _mm512_min_ps(a, b); }
  static Float max(Float a, Float b) { return _mm512_max_ps(a, b); }
  static Float fma(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
  static Float abs(Float a) { return _mm512_abs_ps(a); }

  // The first `n` lanes of a, the rest of b.
  static Float first(std::size_t n, Float a, Float b) {
    return _mm512_mask_blend_ps(static_cast<__mmask16>((1U << n) - 1U), b, a);
  }
  // 2^n * x for integral n.
  static Float scale_by_power(Float x, Float n) { return _mm512_scalef_ps(x, n); }
  static Float round(Float x) {
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }

  static float sum(Float a) {
    const __m256 low = _mm512_castps512_ps256(a);
    const __m256 high = _mm512_extractf32x8_ps(a, 1);
    const __m256 eight = _mm256_add_ps(low, high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float largest(Float a) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

  static Int load_lanes(const std::byte* p) { return _mm512_loadu_si512(p); }
  static Int broadcast_lane(const std::byte* p) {
    std::int32_t lane;
    __builtin_memcpy(&lane, p, sizeof lane);
    return _mm512_set1_epi32(lane);
  }
  static Int zero_int() { return _mm512_setzero_si512(); }
  static Float as_float(Int v) { return _mm512_castsi512_ps(v); }
  static Float keep(Float v, const std::uint32_t* mask) {
    return _mm512_and_ps(v, _mm512_castsi512_ps(_mm512_loadu_si512(mask)));
  }
  static Float to_float(Int v) { return _mm512_cvtepi32_ps(v); }
  static Int to_int(Float v) { return _mm512_cvtps_epi32(v); }  // to the nearest, ties to even
  static Int clamp_int(Int v, std::int32_t low, std::int32_t high) {
    return _mm512_min_epi32(_mm512_max_epi32(v, _mm512_set1_epi32(low)), _mm512_set1_epi32(high));
  }
  static void store_bytes(std::byte* p, Int v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(v));
  }
  static void store_words(std::byte* p, Int v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(v));
  }

  // out[column][row] = in[row][column] for 16 rows and columns; a row of `in` is `stride` floats further.
  static void transpose(const float* in, std::size_t in_stride, float* out, std::size_t out_stride);
};

inline void Avx512::transpose(const float* in, std::size_t in_stride, float* out, std::size_t out_stride) {
  __m512 r[16];
  __m512 t[16];
  for (std::size_t i = 0; i < 16; ++i) r[i] = load(in + i * in_stride);
  for (std::size_t i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  }
  for (std::size_t i = 0; i < 16; i += 4) {
    const auto d = [&t](std::size_t k) { return _mm512_castps_pd(t[k]); };
    r[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(d(i), d(i + 2)));
    r[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(d(i), d(i + 2)));
    r[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(d(i + 1), d(i + 3)));
    r[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(d(i + 1), d(i + 3)));
  }
  // r[4 g + c] holds, in its 128-bit part p, column 4 p + c of rows 4 g .. 4 g + 3.
  for (std::size_t c = 0; c < 4; ++c) {
    const __m512 a = _mm512_shuffle_f32x4(r[c], r[c + 4], 0x88);
    const __m512 b = _mm512_shuffle_f32x4(r[c], r[c + 4], 0xDD);
    const __m512 e = _mm512_shuffle_f32x4(r[c + 8], r[c + 12], 0x88);
    const __m512 f = _mm512_shuffle_f32x4(r[c + 8], r[c + 12], 0xDD);
    store(out + c * out_stride, _mm512_shuffle_f32x4(a, e, 0x88));
    store(out + (c + 4) * out_stride, _mm512_shuffle_f32x4(b, f, 0x88));
    store(out + (c + 8) * out_stride, _mm512_shuffle_f32x4(a, e, 0xDD));
    store(out + (c + 12) * out_stride, _mm512_shuffle_f32x4(b, f, 0xDD));
  }
}

}  // namespace
}  // namespace waybill::embed::kernels
