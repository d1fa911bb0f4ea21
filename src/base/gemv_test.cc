#include "base/gemv.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace waybill {
namespace {

std::vector<float> random_floats(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

TEST(GemvTest, DotRowsIsTheDotProductOfEachRowForAnySize) {
  for (const auto& [rows, columns] : {std::pair(1U, 8U), std::pair(7U, 21U), std::pair(38U, 101U), std::pair(4U, 3U)}) {
    const std::vector<float> matrix = random_floats(rows * columns, rows), vector = random_floats(columns, 99);
    std::vector<float> out(rows);
    dot_rows(matrix, vector, out);
    for (std::size_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (std::size_t c = 0; c < columns; ++c) sum += static_cast<double>(matrix[r * columns + c] * vector[c]);
      EXPECT_NEAR(out[r], sum, 1e-5) << rows << " x " << columns << ", row " << r;
    }
  }
}

TEST(GemvTest, SumRowsIsTheWeightedSumOfRowsForAnyMultipleOfEightColumns) {
  for (const auto& [rows, columns] : {std::pair(1U, 8U), std::pair(7U, 24U), std::pair(38U, 104U), std::pair(5U, 200U)}) {
    const std::vector<float> matrix = random_floats(rows * columns, rows), weights = random_floats(rows, 99);
    std::vector<float> out(columns);
    sum_rows(matrix, weights, out);
    for (std::size_t c = 0; c < columns; ++c) {
      double sum = 0;
      for (std::size_t r = 0; r < rows; ++r) sum += static_cast<double>(weights[r] * matrix[r * columns + c]);
      EXPECT_NEAR(out[c], sum, 1e-5) << rows << " x " << columns << ", column " << c;
    }
  }
}

}  // namespace
}  // namespace waybill
