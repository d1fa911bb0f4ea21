#include "cli/input.h"

#include <array>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace waybill::cli {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;
using testing::HasSubstr;

// The reading end of a pipe that gets `contents` in pieces of `piece` bytes.
class Pipe {
 public:
  Pipe(std::string contents, std::size_t piece) {
    std::array<int, 2> ends = {};
    EXPECT_EQ(::pipe(ends.data()), 0);
    read_ = ends[0];
    writer_ = std::jthread([write = ends[1], contents = std::move(contents), piece] {
      for (std::size_t i = 0; i < contents.size(); i += piece) {
        const std::string_view part = std::string_view(contents).substr(i, piece);
        EXPECT_EQ(::write(write, part.data(), part.size()), static_cast<ssize_t>(part.size()));
      }
      ::close(write);
    });
  }
  ~Pipe() { ::close(read_); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  [[nodiscard]] int descriptor() const { return read_; }

 private:
  int read_ = -1;
  std::jthread writer_;
};

struct ReadBack {
  std::vector<std::string> texts;
  Status ended;
};

ReadBack read_all(const std::string& contents, InputFormat format, std::size_t piece = 1U << 20) {
  const Pipe pipe(contents, piece);
  TextReader reader(format, pipe.descriptor());
  ReadBack out;
  for (std::vector<std::string> texts;;) {
    out.ended = reader.next(texts);
    if (!out.ended || texts.empty()) return out;
    out.texts.insert(out.texts.end(), texts.begin(), texts.end());
  }
}

TEST(TextReader, EveryLineIsATextAndAnEmptyLineTheEmptyText) {
  EXPECT_THAT(read_all("a\n\nb", InputFormat::kLines).texts, ElementsAre("a", "", "b"));
  EXPECT_THAT(read_all("a\nb\n", InputFormat::kLines).texts, ElementsAre("a", "b"));
  EXPECT_THAT(read_all("", InputFormat::kLines).texts, ElementsAre());
  EXPECT_THAT(read_all("\n", InputFormat::kLines).texts, ElementsAre(""));
  EXPECT_THAT(read_all("a\r\nb\r\n", InputFormat::kLines).texts, ElementsAre("a", "b"));
}

TEST(TextReader, HowTheBytesArriveDoesNotMatter) {
  const std::string contents = "one\ntwo\0x\n\nthree \xF0\x9F\x98\x80\nlast"s;
  const auto whole = read_all(contents, InputFormat::kLines).texts;
  for (const std::size_t piece : {1U, 2U, 3U, 7U}) {
    EXPECT_EQ(read_all(contents, InputFormat::kLines, piece).texts, whole);
  }
  ASSERT_EQ(whole.size(), 5U);
  EXPECT_EQ(whole[1], "two\0x"s);
}

TEST(TextReader, ALineMayBeLong) {
  const std::string line(3'000'000, 'x');
  const auto read = read_all(line + "\n" + line, InputFormat::kLines, 65'536);
  ASSERT_EQ(read.texts.size(), 2U);
  EXPECT_EQ(read.texts[1], line);
}

TEST(TextReader, JsonLinesAreStringsOrObjectsWithAText) {
  const auto read = read_all(R"({"text": "a\u0000b", "id": 7}
"\ud800"

{"text": ""})",
                             InputFormat::kJsonl);
  EXPECT_TRUE(read.ended);
  EXPECT_THAT(read.texts, ElementsAre("a\0b"s, "\uFFFD", ""));
}

TEST(TextReader, WhatStandsBeforeABadLineIsGivenFirst) {
  const auto read = read_all("\"a\"\n\n{\"txt\": 1}\n\"b\"\n", InputFormat::kJsonl);
  EXPECT_THAT(read.texts, ElementsAre("a"));
  ASSERT_FALSE(read.ended);
  EXPECT_EQ(read.ended.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(read.ended.error().message, HasSubstr("line 3"));
}

TEST(TextReader, AnUnreadableDescriptorIsAnError) {
  std::vector<std::string> texts;
  TextReader reader(InputFormat::kLines, -1);
  const Status read = reader.next(texts);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kIo);
}

TEST(TextOfJson, RefusesWhatIsNoText) {
  for (const char* line : {"", "{", "7", "[]", "{}", R"({"text": 7})", "\"a\" \"b\"", "\"\x01\""}) {
    EXPECT_FALSE(text_of_json(line)) << line;
  }
}

}  // namespace
}  // namespace waybill::cli
