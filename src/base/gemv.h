// Matrix-vector products, AVX2 or AVX-512 as the CPU has them, with the same bits from both. All read the
// matrix once, which is what bounds them: hence matrices of bytes and halves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace waybill {

// out[r] = sum_c matrix[r * columns + c] * vector[c]: the dot product of every row with the vector. AVX2
// only. Sizes: vector [columns], out [rows], matrix at least rows * columns. Any sizes, no alignment needed.
void dot_rows(std::span<const float> matrix, std::span<const float> vector, std::span<float> out) noexcept;

// The same for rows of bytes and a vector of words, in exact integers: columns a multiple of kByteColumns
// (padded with zeros), and each sum below 2^31 in magnitude (to_words() sees to that).
inline constexpr std::size_t kByteColumns = 32;
void dot_rows(std::span<const std::int8_t> matrix, std::span<const std::int16_t> vector,
              std::span<std::int32_t> out) noexcept;

// out[c] = sum_r weights[r] * matrix[r * columns + c], of halves (IEEE binary16): the weighted sum of the
// rows, added up in f32 in the order of the rows. Sizes: weights [rows], out [columns], columns a multiple of
// kHalfColumns.
inline constexpr std::size_t kHalfColumns = 16;
void sum_rows(std::span<const std::uint16_t> matrix, std::span<const float> weights,
              std::span<float> out) noexcept;

// Rounded to the nearest half; what is too large becomes infinite.
void to_halves(std::span<const float> values, std::span<std::uint16_t> halves) noexcept;

// Rows of floats as bytes, each row times a scale of its own: value = scale * byte, the largest of a row
// +-127.
struct ByteRows {
  std::size_t columns = 0, stride = 0;  // stride: columns padded to a multiple of kByteColumns
  std::vector<std::int8_t> values;      // [rows, stride]
  std::vector<float> scales;            // [rows]

  [[nodiscard]] static ByteRows of(std::span<const float> matrix, std::size_t columns);
  [[nodiscard]] std::size_t rows() const noexcept { return scales.size(); }
  // out [columns].
  void decode(std::size_t row, std::span<float> out) const noexcept;
};

// A vector as words, finer than any row of bytes and small enough for the sums of dot_rows: writes words
// [stride] (zeros past the end of `vector`) and returns the scale. All finite.
float to_words(std::span<const float> vector, std::span<std::int16_t> words) noexcept;

namespace gemv_test {
// The kernels without AVX-512, to hold the two against each other.
void use_avx2_only(bool only) noexcept;
}  // namespace gemv_test

}  // namespace waybill
