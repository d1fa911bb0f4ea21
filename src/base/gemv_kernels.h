// The loops of gemv.h over a vector type. Everything here is local to the file that includes it, and uses no
// inline function of the standard library: code compiled for AVX-512 must never be the one copy that the
// linker keeps.
#pragma once

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

namespace waybill {

struct GemvKernels {
  // columns: a multiple of 32.
  void (*dot_bytes)(const std::int8_t* rows, std::size_t count, std::size_t columns,
                    const std::int16_t* vector, std::int32_t* out);
  // columns: a multiple of 16.
  void (*sum_halves)(const std::uint16_t* rows, std::size_t count, std::size_t columns, const float* weights,
                     float* out);
};

extern const GemvKernels kAvx2Gemv, kAvx512Gemv;

namespace {

// Four rows at a time share each load of the vector.
template <class V, std::size_t Rows>
void dot_block(const std::int8_t* rows, std::size_t columns, const std::int16_t* vector, std::int32_t* out) {
  typename V::Integers sums[Rows];
  for (std::size_t r = 0; r < Rows; ++r) sums[r] = V::zero();
  for (std::size_t c = 0; c < columns; c += V::kWords) {
    const typename V::Integers words = V::load_words(vector + c);
    for (std::size_t r = 0; r < Rows; ++r)
      sums[r] = V::add(sums[r], V::multiply_pairs(V::widen(rows + r * columns + c), words));
  }
  for (std::size_t r = 0; r < Rows; ++r) out[r] = V::total(sums[r]);
}

template <class V>
void dot_bytes(const std::int8_t* rows, std::size_t count, std::size_t columns, const std::int16_t* vector,
               std::int32_t* out) {
  std::size_t r = 0;
  for (; r + 4 <= count; r += 4) dot_block<V, 4>(rows + r * columns, columns, vector, out + r);
  for (; r < count; ++r) dot_block<V, 1>(rows + r * columns, columns, vector, out + r);
}

// A strip of columns stays in registers while all rows pass by.
template <class V, std::size_t Lanes>
void sum_strip(const std::uint16_t* rows, std::size_t count, std::size_t columns, const float* weights,
               float* out) {
  typename V::Floats sums[Lanes];
  for (std::size_t k = 0; k < Lanes; ++k) sums[k] = V::zero_floats();
  for (std::size_t r = 0; r < count; ++r) {
    const typename V::Floats weight = V::broadcast(weights[r]);
    for (std::size_t k = 0; k < Lanes; ++k)
      sums[k] = V::multiply_add(weight, V::load_halves(rows + r * columns + k * V::kFloats), sums[k]);
  }
  for (std::size_t k = 0; k < Lanes; ++k) V::store(out + k * V::kFloats, sums[k]);
}

template <class V>
void sum_halves(const std::uint16_t* rows, std::size_t count, std::size_t columns, const float* weights,
                float* out) {
  constexpr std::size_t kWide = 10, kNarrow = 16 / V::kFloats;
  std::size_t c = 0;
  for (; c + kWide * V::kFloats <= columns; c += kWide * V::kFloats)
    sum_strip<V, kWide>(rows + c, count, columns, weights, out + c);
  for (; c + 2 * kNarrow * V::kFloats <= columns; c += 2 * kNarrow * V::kFloats)
    sum_strip<V, 2 * kNarrow>(rows + c, count, columns, weights, out + c);
  for (; c < columns; c += kNarrow * V::kFloats)
    sum_strip<V, kNarrow>(rows + c, count, columns, weights, out + c);
}

}  // namespace
}  // namespace waybill
