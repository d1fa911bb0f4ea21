#include "base/json_text.h"

#include <gtest/gtest.h>

namespace waybill {
namespace {

TEST(DecodableJson, LeavesWellFormedTextAlone) {
  for (const std::string_view text :
       {R"({"text": "a\n\"\\ \u0000 \ud83d\ude00 \u00e4 é"})", R"("\\ud800")", "", "[1, 2]"}) {
    EXPECT_EQ(decodable_json(text), text);
  }
}

TEST(DecodableJson, HalvesOfSurrogatePairsBecomeTheReplacementCharacter) {
  EXPECT_EQ(decodable_json(R"("\ud800")"), R"("\ufffd")");
  EXPECT_EQ(decodable_json(R"("\uDC00x")"), R"("\ufffdx")");
  EXPECT_EQ(decodable_json(R"("\ud800\ud83d\ude00")"), R"("\ufffd\ud83d\ude00")");
  EXPECT_EQ(decodable_json(R"("\ud800\u0041")"), R"("\ufffd\u0041")");
  EXPECT_EQ(decodable_json(R"("\ud800\\udc00")"), R"("\ufffd\\udc00")");
}

TEST(DecodableJson, InvalidBytesBecomeTheReplacementCharacter) {
  EXPECT_EQ(decodable_json("\"\xFF\xC3\""), "\"\uFFFD\uFFFD\"");
  EXPECT_EQ(decodable_json("\\\xFF"), "\\\uFFFD");
}

TEST(DecodableJson, CutEscapesAreLeftToTheParser) {
  EXPECT_EQ(decodable_json("\"\\u12"), "\"\\u12");
  EXPECT_EQ(decodable_json("\\"), "\\");
}

}  // namespace
}  // namespace waybill
