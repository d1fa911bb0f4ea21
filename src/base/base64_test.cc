#include "base/base64.h"

#include <span>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace waybill {
namespace {

TEST(Base64, ReadsTheVectorsOfRfc4648WithAndWithoutPadding) {
  const std::pair<const char*, const char*> cases[] = {
      {"", ""},        {"Zg==", "f"},        {"Zg", "f"},           {"Zm8=", "fo"},        {"Zm8", "fo"},
      {"Zm9v", "foo"}, {"Zm9vYg==", "foob"}, {"Zm9vYmE=", "fooba"}, {"Zm9vYmFy", "foobar"}};
  for (const auto& [text, bytes] : cases) EXPECT_EQ(decode_base64(text), bytes) << text;
}

TEST(Base64, ReadsWhatItWrites) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(decode_base64(base64(std::as_bytes(std::span(bytes)))), bytes);
    bytes.push_back(static_cast<char>(i * 37));
  }
}

TEST(Base64, DropsBitsThatMakeNoByte) { EXPECT_EQ(decode_base64("Zh=="), "f"); }

TEST(Base64, RefusesWhatIsNone) {
  for (const char* text : {"Z", "Zm9vY", "Zg=", "Zg===", "=", "====", "Zm 8", "Zm9v\n", "Zm-_", "Z=g="})
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
}

}  // namespace
}  // namespace waybill
