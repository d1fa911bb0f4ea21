#include "base/json_writer.h"

#include <array>
#include <charconv>
#include <limits>
#include <random>

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace waybill {
namespace {

TEST(JsonWriter, WritesObjectsAndArrays) {
  std::string out;
  JsonWriter json(out);
  json.begin_object()
      .key("a")
      .begin_array()
      .integer(1)
      .integer(-2)
      .end_array()
      .key("b")
      .string("x")
      .key("c")
      .boolean(true);
  json.key("d").null().key("e").begin_object().end_object().key("f").number(0.25).end_object();
  EXPECT_EQ(out, R"({"a":[1,-2],"b":"x","c":true,"d":null,"e":{},"f":0.25})");
}

TEST(JsonWriter, EveryStringComesBack) {
  std::mt19937 random(3);
  for (int i = 0; i < 2'000; ++i) {
    std::string text(random() % 12, '\0');
    for (char& c : text) c = static_cast<char>(random() % 128);
    std::string out;
    JsonWriter(out).string(text);
    EXPECT_EQ(std::string(boost::json::parse(out).as_string()), text);
  }
}

TEST(JsonWriter, InvalidUtf8BecomesTheReplacementCharacter) {
  std::string out;
  JsonWriter(out).string("a\xFFz");
  EXPECT_EQ(out, "\"a\uFFFDz\"");
}

TEST(JsonWriter, NineDigitsBringEveryFloatBack) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int i = 0; i < 5'000; ++i) {
    const std::array<float, 1> value = {uniform(random)};
    std::string out;
    JsonWriter(out).floats(value);
    float back = 0;
    std::from_chars(out.data() + 1, out.data() + out.size() - 1, back);
    EXPECT_EQ(back, value[0]);
  }
}

TEST(JsonWriter, NumbersThatJsonCannotSayAreNull) {
  std::string out;
  JsonWriter json(out);
  json.begin_array().number(std::numeric_limits<double>::quiet_NaN()).number(1.0 / 0.0).end_array();
  EXPECT_EQ(out, "[null,null]");
}

}  // namespace
}  // namespace waybill
