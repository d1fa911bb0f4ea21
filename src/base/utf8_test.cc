#include "base/utf8.h"

#include <random>

#include <gtest/gtest.h>

namespace waybill {
namespace {

using namespace std::string_literals;

TEST(Utf8, EveryCodePointSurvivesARoundTrip) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, c);
    std::size_t position = 0;
    ASSERT_EQ(next_code_point(text, position), c);
    ASSERT_EQ(position, text.size());
  }
}

// The examples of Unicode 15, tables 3-8 to 3-11.
TEST(Utf8, EachMaximalIllFormedPartIsOneReplacement) {
  EXPECT_EQ(to_valid_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"s),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(to_valid_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"s),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(to_valid_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"s),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA\uFFFD\uFFFDB");
  EXPECT_EQ(to_valid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"s), "\uFFFD\uFFFD\uFFFD\uFFFDA");
}

TEST(Utf8, ValidityAgreesWithDecoding) {
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string text(1 + random() % 6, '\0');
    for (char& c : text) c = static_cast<char>(random() % 3 == 0 ? random() % 128 : 128 + random() % 128);
    EXPECT_EQ(is_valid_utf8(text), to_valid_utf8(text) == text);
  }
}

}  // namespace
}  // namespace waybill
