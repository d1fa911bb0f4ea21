// 256-bit vectors for the templates beside this file: AVX2 and FMA, which every file is compiled with.
#pragma once

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

namespace waybill::embed::kernels {
namespace {

struct Avx2 {
  using Float = __m256;
  using Int = __m256i;
  static constexpr std::size_t kFloats = 8;
  static constexpr std::size_t kPanelVectors =
      2;  // 6 x 2 sums, 2 weights and a broadcast fill 15 of 16 registers
  static constexpr std::size_t kTileRows = 6;

  static Float load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Float v) { _mm256_storeu_ps(p, v); }
  static Float broadcast(float v) { return _mm256_set1_ps(v); }
  static Float zero() { return _mm256_setzero_ps(); }
  static Float add(Float a, Float b) { return _mm256_add_ps(a, b); }
  static Float sub(Float a, Float b) { return _mm256_sub_ps(a, b); }
  static Float mul(Float a, Float b) { return _mm256_mul_ps(a, b); }
  static Float div(Float a, Float b) { return _mm256_div_ps(a, b); }
  static Float min(Float a, Float b) { return _mm256_min_ps(a, b); }
  static Float max(Float a, Float b) { return _mm256_max_ps(a, b); }
  static Float fma(Float a, Float b, Float c) { return _mm256_fmadd_ps(a, b, c); }
  static Float abs(Float a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), a); }

  // The first `n` lanes of a, the rest of b.
  static Float first(std::size_t n, Float a, Float b) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i chosen = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<std::int32_t>(n)), lane);
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(chosen));
  }
  // 2^n * x for integral n; zero where 2^n is no normal number.
  static Float scale_by_power(Float x, Float n) {
    const __m256i exponent =
        _mm256_add_epi32(_mm256_cvtps_epi32(max(n, broadcast(-127.0F))), _mm256_set1_epi32(127));
    return mul(x, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
  }
  static Float round(Float x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

  static float sum(Float a) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float largest(Float a) {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

  static Int load_lanes(const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static Int broadcast_lane(const std::byte* p) {
    std::int32_t lane;
    __builtin_memcpy(&lane, p, sizeof lane);
    return _mm256_set1_epi32(lane);
  }
  static Int zero_int() { return _mm256_setzero_si256(); }
  static Float as_float(Int v) { return _mm256_castsi256_ps(v); }
  static Float keep(Float v, const std::uint32_t* mask) {
    return _mm256_and_ps(v, _mm256_loadu_ps(reinterpret_cast<const float*>(mask)));
  }
  static Float to_float(Int v) { return _mm256_cvtepi32_ps(v); }
  static Int to_int(Float v) { return _mm256_cvtps_epi32(v); }  // to the nearest, ties to even
  static Int clamp_int(Int v, std::int32_t low, std::int32_t high) {
    return _mm256_min_epi32(_mm256_max_epi32(v, _mm256_set1_epi32(low)), _mm256_set1_epi32(high));
  }
  // The low 16 bits of each lane; lanes must fit.
  static void store_words(std::byte* p, Int v) {
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), words);
  }
  // The low 8 bits of each lane, unsigned; lanes must fit.
  static void store_bytes(std::byte* p, Int v) {
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(words, words));
  }

  // out[column][row] = in[row][column] for 8 rows and columns; a row of `in` is `stride` floats further.
  static void transpose(const float* in, std::size_t in_stride, float* out, std::size_t out_stride);
};

inline void Avx2::transpose(const float* in, std::size_t in_stride, float* out, std::size_t out_stride) {
  __m256 r[8];
  __m256 t[8];
  for (std::size_t i = 0; i < 8; ++i) r[i] = load(in + i * in_stride);
  for (std::size_t i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (std::size_t i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xEE);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
  }
  for (std::size_t c = 0; c < 4; ++c) {
    store(out + c * out_stride, _mm256_permute2f128_ps(r[c], r[c + 4], 0x20));
    store(out + (c + 4) * out_stride, _mm256_permute2f128_ps(r[c], r[c + 4], 0x31));
  }
}

}  // namespace
}  // namespace waybill::embed::kernels
