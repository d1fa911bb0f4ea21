// Matrix-vector products in f32, AVX2 and FMA. Both read the matrix once, which is what bounds them.
#pragma once

#include <cstddef>
#include <span>

namespace waybill {

// out[r] = sum_c matrix[r * columns + c] * vector[c]: the dot product of every row with the vector.
// Sizes: vector [columns], out [rows], matrix at least rows * columns. Any sizes, no alignment needed.
void dot_rows(std::span<const float> matrix, std::span<const float> vector, std::span<float> out) noexcept;

// out[c] = sum_r weights[r] * matrix[r * columns + c]: the weighted sum of the rows.
// Sizes: weights [rows], out [columns], columns a multiple of 8.
void sum_rows(std::span<const float> matrix, std::span<const float> weights, std::span<float> out) noexcept;

}  // namespace waybill
