// Inputs and dot products in bf16, as templates over a vector type. Included only by the files that are
// compiled for one instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

#include "embed/kernels/kernels.h"

namespace waybill::embed::kernels {
namespace {

// Two bf16 a lane, added up in f32.
template <class V>
struct DotBf16 {
  using Sum = typename V::Float;
  static constexpr Element kElement = Element::kBf16;
  static constexpr bool kScaled = false;
  static Sum zero() { return V::zero(); }
  static Sum dot(Sum sum, typename V::Int inputs, typename V::Int weights) {
    return V::dot_bf16(sum, inputs, weights);
  }
  static typename V::Float load_sum(const float* sums) { return V::load(sums); }
};

// To the nearest bf16, ties to even, by integer arithmetic: the upper half of x + 0x7FFF + its own lowest
// bit. For any vector type, for tests on CPUs without a conversion instruction.
template <class V>
struct RoundToBf16 {
  // V::kFloats bf16 from as many floats.
  static void store(std::byte* to, typename V::Float v) {
    alignas(64) std::uint32_t bits[V::kFloats];
    __builtin_memcpy(bits, &v, sizeof bits);
    std::uint16_t halves[V::kFloats];
    for (std::size_t i = 0; i < V::kFloats; ++i) {
      const bool is_nan = (bits[i] & 0x7FFFFFFFU) > 0x7F800000U;
      const std::uint32_t rounded = bits[i] + 0x7FFFU + ((bits[i] >> 16) & 1U);
      halves[i] = static_cast<std::uint16_t>((is_nan ? bits[i] | 0x00400000U : rounded) >> 16);
    }
    __builtin_memcpy(to, halves, sizeof halves);
  }
};

// Rows of bf16, zeros behind the last input: what is there would be multiplied with the zeros of the weights,
// and could be no number.
template <class V, class Convert>
void prepare_bf16(const PackedLinear& linear, const float* inputs, std::size_t stride, std::size_t rows,
                  std::byte* prepared) {
  constexpr std::size_t kBytes = sizeof(std::uint16_t);
  const std::size_t whole = linear.inputs / V::kFloats * V::kFloats;
  const std::size_t padded = std::size_t{linear.lanes} * 2;
  for (std::size_t r = 0; r < rows; ++r) {
    const float* const from = inputs + r * stride;
    std::byte* const to = prepared + r * linear.row_bytes;
    for (std::size_t i = 0; i < whole; i += V::kFloats) Convert::store(to + i * kBytes, V::load(from + i));
    for (std::size_t i = whole; i < padded; i += V::kFloats) {
      const std::size_t left = i < linear.inputs ? linear.inputs - i : 0;
      const auto last = left == 0 ? V::zero() : V::first(left, V::load(from + i), V::zero());
      Convert::store(to + i * kBytes, last);
    }
  }
}

#ifdef __AVX512BF16__

// The same by the CPU's own instruction, which takes denormals for zeros (Intel SDM, VCVTNEPS2BF16).
struct ConvertToBf16 {
  static void store(std::byte* to, __m512 v) {
    const __m256bh halves = _mm512_cvtneps_pbh(v);
    __builtin_memcpy(to, &halves, sizeof halves);
  }
};

#endif

}  // namespace
}  // namespace waybill::embed::kernels
