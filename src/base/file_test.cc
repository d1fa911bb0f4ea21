#include "base/file.h"

#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace waybill {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("waybill-file-test-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(FileTest, WrittenFilesReadBackAndLeaveNothingBeside) {
  const auto path = folder_ / "deep" / "a.txt";
  ASSERT_TRUE(write_file_atomically(path, "hello"));
  EXPECT_EQ(read_file(path).value(), "hello");
  EXPECT_EQ(MappedFile::open(path).value().text(), "hello");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path.parent_path()), {}), 1);
}

TEST_F(FileTest, FailuresSayWhichFileAndWhy) {
  EXPECT_EQ(read_file(folder_ / "missing").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(MappedFile::open(folder_).error().code, ErrorCode::kIo);
  ASSERT_TRUE(write_file_atomically(folder_ / "large", "123456"));
  EXPECT_EQ(read_file(folder_ / "large", 5).error().code, ErrorCode::kInvalidInput);
  const Status written = write_file_atomically("/dev/null/x", "y");
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("/dev/null/x"), std::string::npos);
}

TEST_F(FileTest, PiecesAreReadBesideTheMapping) {
  ASSERT_TRUE(write_file_atomically(folder_ / "a", "0123456789"));
  MappedFile file;
  file = MappedFile::open(folder_ / "a").value();
  std::string piece(4, ' ');
  EXPECT_TRUE(file.read_at(3, std::as_writable_bytes(std::span(piece))));
  EXPECT_EQ(piece, "3456");
  EXPECT_FALSE(file.read_at(8, std::as_writable_bytes(std::span(piece))));
}

TEST_F(FileTest, AnEmptyFileMapsToAnEmptySpan) {
  ASSERT_TRUE(write_file_atomically(folder_ / "empty", ""));
  EXPECT_TRUE(MappedFile::open(folder_ / "empty").value().bytes().empty());
}

}  // namespace
}  // namespace waybill
