#include "base/gemv.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

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
  for (const auto& [rows, columns] :
       {std::pair(1U, 8U), std::pair(7U, 21U), std::pair(38U, 101U), std::pair(4U, 3U)}) {
    const std::vector<float> matrix = random_floats(rows * columns, rows),
                             vector = random_floats(columns, 99);
    std::vector<float> out(rows);
    dot_rows(matrix, vector, out);
    for (std::size_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (std::size_t c = 0; c < columns; ++c)
        sum += static_cast<double>(matrix[r * columns + c] * vector[c]);
      EXPECT_NEAR(out[r], sum, 1e-5) << rows << " x " << columns << ", row " << r;
    }
  }
}

std::vector<std::uint16_t> halves_of(const std::vector<float>& values) {
  std::vector<std::uint16_t> halves(values.size());
  to_halves(values, halves);
  return halves;
}

TEST(GemvTest, DotRowsOfBytesIsExact) {
  for (const auto& [rows, columns] :
       {std::pair(1U, 8U), std::pair(7U, 33U), std::pair(38U, 384U), std::pair(5U, 768U)}) {
    const ByteRows bytes = ByteRows::of(random_floats(rows * columns, rows), columns);
    std::vector<std::int16_t> words(bytes.stride);
    to_words(random_floats(columns, 99), words);
    std::vector<std::int32_t> out(rows), with_avx2(rows);
    dot_rows(bytes.values, words, out);
    gemv_test::use_avx2_only(true);
    dot_rows(bytes.values, words, with_avx2);
    gemv_test::use_avx2_only(false);
    EXPECT_EQ(out, with_avx2);
    for (std::size_t r = 0; r < rows; ++r) {
      std::int64_t sum = 0;
      for (std::size_t c = 0; c < columns; ++c)
        sum += std::int64_t{bytes.values[r * bytes.stride + c]} * words[c];
      EXPECT_EQ(out[r], sum) << rows << " x " << columns << ", row " << r;
    }
  }
}

TEST(GemvTest, TheLargestSumOfBytesAndWordsFits) {
  for (const std::size_t columns : {32U, 384U, 512U, 768U, 1024U}) {
    const std::vector<float> ones(columns, 1.0F);
    const ByteRows bytes = ByteRows::of(ones, columns);
    std::vector<std::int16_t> words(columns);
    const float scale = to_words(ones, words);
    std::vector<std::int32_t> out(1);
    dot_rows(bytes.values, words, out);
    EXPECT_NEAR(scale * bytes.scales[0] * static_cast<float>(out[0]), static_cast<float>(columns),
                1e-3F * static_cast<float>(columns));
  }
}

TEST(GemvTest, BytesAndWordsAreCloseToWhatTheyStandFor) {
  const std::vector<float> matrix = random_floats(3 * 50, 1);
  const ByteRows bytes = ByteRows::of(matrix, 50);
  std::vector<float> row(50);
  bytes.decode(2, row);
  for (std::size_t c = 0; c < 50; ++c) EXPECT_NEAR(row[c], matrix[100 + c], 0.5F / 127);
  std::vector<std::int16_t> words(64, 7);
  const float scale = to_words(row, words);
  for (std::size_t c = 0; c < 64; ++c)
    EXPECT_NEAR(scale * static_cast<float>(words[c]), c < 50 ? row[c] : 0, 0.5F / 32000);
  const std::vector<float> zeros(40);
  EXPECT_EQ(to_words(zeros, words), 0);
  EXPECT_EQ(ByteRows::of(zeros, 40).scales[0], 0);
}

TEST(GemvTest, SumRowsIsTheWeightedSumOfRowsForAnyMultipleOfItsColumns) {
  for (const auto& [rows, columns] :
       {std::pair(1U, 16U), std::pair(7U, 48U), std::pair(38U, 160U), std::pair(5U, 416U)}) {
    const std::vector<float> matrix = random_floats(rows * columns, rows), weights = random_floats(rows, 99);
    const std::vector<std::uint16_t> halves = halves_of(matrix);
    std::vector<float> out(columns), with_avx2(columns);
    sum_rows(halves, weights, out);
    gemv_test::use_avx2_only(true);
    sum_rows(halves, weights, with_avx2);
    gemv_test::use_avx2_only(false);
    EXPECT_EQ(out, with_avx2);  // bit for bit
    for (std::size_t c = 0; c < columns; ++c) {
      double sum = 0;
      for (std::size_t r = 0; r < rows; ++r) sum += static_cast<double>(weights[r] * matrix[r * columns + c]);
      EXPECT_NEAR(out[c], sum, 5e-4 * rows) << rows << " x " << columns << ", column " << c;
    }
  }
}

}  // namespace
}  // namespace waybill
