#include "embed/codepoints.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace waybill::embed {
namespace {

char32_t lower(char32_t c) { return c + static_cast<char32_t>(code_point(c).lower); }

// All rules on, in the reference's order.
std::u32string normalised(char32_t c) {
  const CodePoint& properties = code_point(c);
  if ((properties.flags & kControl) != 0) return U"";
  if ((properties.flags & kSpace) != 0) return U" ";
  if ((properties.flags & kMark) != 0) return U"";
  std::u32string out(1, c);
  if (properties.decomposition_length > 0) {
    const auto parts = decomposition(properties);
    out.assign(parts.begin(), parts.end());
  }
  std::ranges::transform(out, out.begin(), lower);
  return (properties.flags & kIdeograph) != 0 ? U' ' + out + U' ' : out;
}

// tests/data/bert-codepoints.tsv: what the reference does with every code point, all rules at once.
TEST(CodePointsTest, EveryCodePointIsTreatedAsTheReferenceTreatsIt) {
  std::map<char32_t, std::u32string> mapped;
  std::set<char32_t> white;
  std::set<char32_t> punctuation;
  std::ifstream file(WAYBILL_SOURCE_DIR "/tests/data/bert-codepoints.tsv");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    unsigned first = 0;
    unsigned last = 0;
    std::string action;
    fields >> std::hex >> first >> last >> action;
    std::u32string to;
    for (unsigned part = 0; fields >> std::hex >> part;) to += static_cast<char32_t>(part);
    for (char32_t c = first; c <= last; ++c) {
      if (action == "white") white.insert(c);
      if (action == "punct") punctuation.insert(c);
      if (action == "drop") mapped[c] = U"";
      if (action == "space") mapped[c] = U" ";
      if (action == "map") mapped[c] = to;
      if (action == "pad") mapped[c] = {U' ', c, U' '};
    }
  }
  ASSERT_GT(mapped.size(), 100'000U);
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    const auto found = mapped.find(c);
    ASSERT_EQ(normalised(c), found == mapped.end() ? std::u32string(1, c) : found->second)
        << std::hex << static_cast<unsigned>(c);
    ASSERT_EQ((code_point(c).flags & kWhite) != 0, white.contains(c)) << std::hex << static_cast<unsigned>(c);
    ASSERT_EQ((code_point(c).flags & kPunctuation) != 0, punctuation.contains(c))
        << std::hex << static_cast<unsigned>(c);
  }
}

TEST(CodePointsTest, HangulSyllablesFallIntoJamo) {
  char32_t jamo[3] = {};
  EXPECT_EQ(decompose_hangul(0xAC00, jamo), 2U);
  EXPECT_EQ(jamo[0], 0x1100U);
  EXPECT_EQ(jamo[1], 0x1161U);
  EXPECT_EQ(decompose_hangul(0xD7A3, jamo), 3U);
  EXPECT_EQ(jamo[2], 0x11C2U);
}

TEST(CodePointsTest, ValuesBeyondUnicodeAreLetters) {
  EXPECT_EQ(code_point(0x110000), CodePoint{});
  EXPECT_EQ(code_point(0xFFFFFFFF), CodePoint{});
}

}  // namespace
}  // namespace waybill::embed
