#include "embed/quantise.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "base/check.h"

namespace waybill::embed {
namespace {

constexpr float kInt8Most = 127.0F;
constexpr float kInt16Most = 2047.0F;
// Quantised inputs beyond 16 bits would not fit the instruction.
constexpr std::int64_t kInputMost = 32767;

}  // namespace

IntegerLinear quantise_linear(Precision precision, std::span<const float> weights, std::size_t inputs,
                              std::size_t outputs, std::span<const std::uint32_t> outliers) {
  WAYBILL_CHECK(precision == Precision::kInt8 || precision == Precision::kInt16);
  const bool zero_point = precision == Precision::kInt8;
  const float most = zero_point ? kInt8Most : kInt16Most;
  const std::size_t first_outlier = zero_point ? 1 : 0;
  IntegerLinear out;
  out.integers.resize(outputs * inputs);
  out.scales.resize(outputs);
  out.side.resize((first_outlier + outliers.size()) * outputs);
  std::vector<float> row(inputs);
  std::int64_t largest_sum = 1;
  for (std::size_t o = 0; o < outputs; ++o) {
    std::copy_n(weights.begin() + static_cast<std::ptrdiff_t>(o * inputs), inputs, row.begin());
    for (std::size_t t = 0; t < outliers.size(); ++t) {
      out.side[(first_outlier + t) * outputs + o] = std::exchange(row[outliers[t]], 0.0F);
    }
    float largest = 0.0F;
    for (const float w : row) largest = std::max(largest, std::fabs(w));
    const float inverse = largest > 0.0F ? most / largest : 0.0F;
    out.scales[o] = largest / most;
    std::int64_t sum = 0;
    std::int64_t magnitudes = 0;
    for (std::size_t i = 0; i < inputs; ++i) {
      const auto q = static_cast<std::int16_t>(std::nearbyintf(row[i] * inverse));
      out.integers[o * inputs + i] = q;
      sum += q;
      magnitudes += std::abs(q);
    }
    largest_sum = std::max(largest_sum, magnitudes);
    if (zero_point) out.side[o] = out.scales[o] * static_cast<float>(sum);
  }
  // No sum of any row of inputs can then pass 32 bits.
  if (!zero_point) {
    out.limit = static_cast<std::int32_t>(
        std::min(kInputMost, std::numeric_limits<std::int32_t>::max() / largest_sum));
  }
  return out;
}

}  // namespace waybill::embed
