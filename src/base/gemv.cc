#include "base/gemv.h"

#include <immintrin.h>

#include "base/check.h"

namespace waybill {
namespace {

float sum_of(__m256 v) noexcept {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

// Four rows at a time share each load of the vector, and their eight sums hide the latency of the additions.
template <std::size_t Rows>
void dot_block(const float* rows, std::size_t columns, const float* vector, float* out) noexcept {
  __m256 even[Rows], odd[Rows];
  for (std::size_t r = 0; r < Rows; ++r) even[r] = odd[r] = _mm256_setzero_ps();
  std::size_t c = 0;
  for (; c + 16 <= columns; c += 16) {
    const __m256 a = _mm256_loadu_ps(vector + c), b = _mm256_loadu_ps(vector + c + 8);
    for (std::size_t r = 0; r < Rows; ++r) {
      even[r] = _mm256_fmadd_ps(_mm256_loadu_ps(rows + r * columns + c), a, even[r]);
      odd[r] = _mm256_fmadd_ps(_mm256_loadu_ps(rows + r * columns + c + 8), b, odd[r]);
    }
  }
  for (std::size_t r = 0; r < Rows; ++r) {
    float sum = sum_of(_mm256_add_ps(even[r], odd[r]));
    for (std::size_t k = c; k < columns; ++k) sum += rows[r * columns + k] * vector[k];
    out[r] = sum;
  }
}

// A strip of 8 * Lanes columns stays in registers while all rows pass by.
template <std::size_t Lanes>
void sum_strip(const float* matrix, std::size_t columns, std::span<const float> weights, float* out) noexcept {
  __m256 sums[Lanes];
  for (std::size_t k = 0; k < Lanes; ++k) sums[k] = _mm256_setzero_ps();
  for (std::size_t r = 0; r < weights.size(); ++r) {
    const __m256 weight = _mm256_set1_ps(weights[r]);
    for (std::size_t k = 0; k < Lanes; ++k) {
      sums[k] = _mm256_fmadd_ps(weight, _mm256_loadu_ps(matrix + r * columns + 8 * k), sums[k]);
    }
  }
  for (std::size_t k = 0; k < Lanes; ++k) _mm256_storeu_ps(out + 8 * k, sums[k]);
}

}  // namespace

void dot_rows(std::span<const float> matrix, std::span<const float> vector, std::span<float> out) noexcept {
  const std::size_t columns = vector.size(), rows = out.size();
  WAYBILL_CHECK(matrix.size() >= rows * columns);
  std::size_t r = 0;
  for (; r + 4 <= rows; r += 4) dot_block<4>(&matrix[r * columns], columns, vector.data(), &out[r]);
  for (; r < rows; ++r) dot_block<1>(&matrix[r * columns], columns, vector.data(), &out[r]);
}

void sum_rows(std::span<const float> matrix, std::span<const float> weights, std::span<float> out) noexcept {
  const std::size_t columns = out.size();
  WAYBILL_CHECK(columns % 8 == 0 && matrix.size() >= weights.size() * columns);
  std::size_t c = 0;
  for (; c + 80 <= columns; c += 80) sum_strip<10>(matrix.data() + c, columns, weights, &out[c]);
  for (; c + 32 <= columns; c += 32) sum_strip<4>(matrix.data() + c, columns, weights, &out[c]);
  for (; c < columns; c += 8) sum_strip<1>(matrix.data() + c, columns, weights, &out[c]);
}

}  // namespace waybill
