#include "embed/word_table.h"

#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embed/test_model.h"

namespace waybill::embed {
namespace {

using ::testing::ElementsAre;

// [3000, 2] in a file behind 8 other bytes: row i is i and -i.
class WordTableTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kWords = 3000;

  void SetUp() override {
    std::string bytes(8, 'x');
    for (std::size_t i = 0; i < kWords; ++i) {
      const float row[2] = {static_cast<float>(i), -static_cast<float>(i)};
      bytes.append(reinterpret_cast<const char*>(row), sizeof row);
    }
    folder_.write("words", bytes);
    file_ = MappedFile::open(folder_.path() / "words").value();
  }
  [[nodiscard]] Tensor rows() const {
    return {.dtype = DType::kF32, .shape = {kWords, 2}, .bytes = file_.bytes().subspan(8)};
  }

  testing::TemporaryFolder folder_;
  MappedFile file_;
};

TEST_F(WordTableTest, RowsComeFromTheFileAsFromMemory) {
  const WordTable in_file(rows(), &file_), in_memory(rows());
  std::vector<float> out(2);
  for (const std::size_t id : {0UL, 1UL, 2999UL}) {
    const auto i = static_cast<float>(id);
    in_file.copy_row(id, out);
    EXPECT_THAT(out, ElementsAre(i, -i));
    in_memory.copy_row(id, out);
    EXPECT_THAT(out, ElementsAre(i, -i));
  }
}

TEST_F(WordTableTest, WordsThatShareAPlaceInTheCacheStayApart) {
  const WordTable table(rows(), &file_);
  WordCache cache;
  std::vector<float> out(2);
  for (const std::size_t id : {5UL, 1029UL, 2053UL, 5UL, 5UL, 6UL}) {
    cache.copy_row(table, id, out);
    EXPECT_EQ(out[0], static_cast<float>(id));
  }
}

TEST_F(WordTableTest, ACacheForgetsTheRowsOfAnotherTable) {
  const WordTable table(rows(), &file_);
  Tensor shifted = rows();
  shifted.shape = {kWords - 1, 2};
  shifted.bytes = shifted.bytes.subspan(8);
  const WordTable other(shifted, &file_);
  WordCache cache;
  std::vector<float> out(2);
  cache.copy_row(table, 5, out);
  cache.copy_row(other, 5, out);
  EXPECT_EQ(out[0], 6);
}

TEST_F(WordTableTest, AFileThatBecameShorterIsToldAndNotCached) {
  const WordTable table(rows(), &file_);
  WordCache cache;
  std::vector<float> out(2);
  cache.copy_row(table, 5, out);
  std::filesystem::resize_file(folder_.path() / "words", 16);
  EXPECT_THROW(cache.copy_row(table, 1029, out), std::runtime_error);
  EXPECT_THROW(cache.copy_row(table, 5, out), std::runtime_error) << "its place was given up";
}

}  // namespace
}  // namespace waybill::embed
