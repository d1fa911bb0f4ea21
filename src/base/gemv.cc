#include "base/gemv.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include <immintrin.h>

#include "base/check.h"
#include "base/cpu.h"
#include "base/gemv_kernels.h"

namespace waybill {
namespace {

struct Avx2 {
  using Integers = __m256i;
  using Floats = __m256;
  static constexpr std::size_t kWords = 16, kFloats = 8;

  static Integers zero() { return _mm256_setzero_si256(); }
  static Integers load_words(const std::int16_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static Integers widen(const std::int8_t* p) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Integers multiply_pairs(Integers a, Integers b) { return _mm256_madd_epi16(a, b); }
  static Integers add(Integers a, Integers b) { return _mm256_add_epi32(a, b); }
  static std::int32_t total(Integers v) {
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xB1)));
  }

  static Floats zero_floats() { return _mm256_setzero_ps(); }
  static Floats broadcast(float x) { return _mm256_set1_ps(x); }
  static Floats load_halves(const std::uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  static void store(float* p, Floats v) { _mm256_storeu_ps(p, v); }
};

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

std::atomic<const GemvKernels*> forced_kernels{nullptr};

const GemvKernels& kernels() noexcept {
  if (const GemvKernels* const forced = forced_kernels.load(std::memory_order_relaxed)) return *forced;
  static const GemvKernels& picked = cpu_features().avx512 ? kAvx512Gemv : kAvx2Gemv;
  return picked;
}

float largest_of(std::span<const float> values) noexcept {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

constexpr float kByteLimit = 127;

}  // namespace

const GemvKernels kAvx2Gemv = {dot_bytes<Avx2>, sum_halves<Avx2>};

void dot_rows(std::span<const float> matrix, std::span<const float> vector, std::span<float> out) noexcept {
  const std::size_t columns = vector.size(), rows = out.size();
  WAYBILL_CHECK(matrix.size() >= rows * columns);
  std::size_t r = 0;
  for (; r + 4 <= rows; r += 4) dot_block<4>(&matrix[r * columns], columns, vector.data(), &out[r]);
  for (; r < rows; ++r) dot_block<1>(&matrix[r * columns], columns, vector.data(), &out[r]);
}

void dot_rows(std::span<const std::int8_t> matrix, std::span<const std::int16_t> vector,
              std::span<std::int32_t> out) noexcept {
  WAYBILL_CHECK(vector.size() % kByteColumns == 0 && matrix.size() >= out.size() * vector.size());
  kernels().dot_bytes(matrix.data(), out.size(), vector.size(), vector.data(), out.data());
}

void sum_rows(std::span<const std::uint16_t> matrix, std::span<const float> weights,
              std::span<float> out) noexcept {
  WAYBILL_CHECK(out.size() % kHalfColumns == 0 && matrix.size() >= weights.size() * out.size());
  kernels().sum_halves(matrix.data(), weights.size(), out.size(), weights.data(), out.data());
}

void to_halves(std::span<const float> values, std::span<std::uint16_t> halves) noexcept {
  WAYBILL_CHECK(values.size() == halves.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    halves[i] = static_cast<std::uint16_t>(
        _mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(values[i]), _MM_FROUND_TO_NEAREST_INT), 0));
  }
}

ByteRows ByteRows::of(std::span<const float> matrix, std::size_t columns) {
  WAYBILL_CHECK(columns > 0 && matrix.size() % columns == 0);
  ByteRows rows{.columns = columns,
                .stride = (columns + kByteColumns - 1) / kByteColumns * kByteColumns,
                .values = {},
                .scales = {}};
  const std::size_t count = matrix.size() / columns;
  rows.values.resize(count * rows.stride);
  rows.scales.resize(count);
  for (std::size_t r = 0; r < count; ++r) {
    const std::span<const float> row = matrix.subspan(r * columns, columns);
    const float largest = largest_of(row), factor = largest > 0 ? kByteLimit / largest : 0;
    rows.scales[r] = largest / kByteLimit;
    for (std::size_t c = 0; c < columns; ++c)
      rows.values[r * rows.stride + c] = static_cast<std::int8_t>(std::lrint(row[c] * factor));
  }
  return rows;
}

void ByteRows::decode(std::size_t row, std::span<float> out) const noexcept {
  WAYBILL_CHECK(out.size() == columns && row < rows());
  for (std::size_t c = 0; c < columns; ++c)
    out[c] = scales[row] * static_cast<float>(values[row * stride + c]);
}

float to_words(std::span<const float> vector, std::span<std::int16_t> words) noexcept {
  WAYBILL_CHECK(words.size() >= vector.size());
  const float limit =
      std::min(32767.0F, std::floor(2147483000.0F / (kByteLimit * static_cast<float>(words.size()))));
  const float largest = largest_of(vector), factor = largest > 0 ? limit / largest : 0;
  for (std::size_t i = 0; i < vector.size(); ++i)
    words[i] = static_cast<std::int16_t>(std::lrint(vector[i] * factor));
  std::fill(words.begin() + static_cast<std::ptrdiff_t>(vector.size()), words.end(), std::int16_t{0});
  return largest / limit;
}

void gemv_test::use_avx2_only(bool only) noexcept { forced_kernels = only ? &kAvx2Gemv : nullptr; }

}  // namespace waybill
