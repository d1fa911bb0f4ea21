#include "upstream/json_scanner.h"

#include <fstream>
#include <string>

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace waybill::upstream {
namespace {

bool is_json(std::string_view text) {
  JsonScanner json(text);
  json.skip();
  return json.at_end();
}

std::string decoded(std::string_view raw) {
  const std::string text = "\"" + std::string(raw) + "\"";
  JsonScanner json(text);
  JsonString string;
  EXPECT_TRUE(json.read(string) && json.at_end()) << raw;
  std::string out;
  string.append_to(out);
  return out;
}

TEST(JsonScanner, AcceptsAndRefusesWhatJsonTestSuiteDoes) {
  std::ifstream file(WAYBILL_SOURCE_DIR "/tests/data/json_parsing.jsonl");
  int accepted = 0, refused = 0;
  for (std::string line; std::getline(file, line);) {
    const boost::json::value value = boost::json::parse(line);
    const std::string name(value.at("name").as_string());
    const std::string hex(value.at("hex").as_string());
    std::string text;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
      text += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    const bool valid = is_json(text);
    if (name.starts_with("y_")) {
      EXPECT_TRUE(valid) << name;
    }
    if (name.starts_with("n_")) {
      EXPECT_FALSE(valid) << name;
    }
    (valid ? accepted : refused) += 1;
  }
  EXPECT_GE(accepted, 95);
  EXPECT_GE(refused, 180);
}

TEST(JsonScanner, BoundsDepth) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(is_json(nested(JsonScanner::kMaxDepth)));
  EXPECT_FALSE(is_json(nested(JsonScanner::kMaxDepth + 1)));
  EXPECT_FALSE(is_json(std::string(1'000'000, '[')));
  EXPECT_FALSE(is_json(std::string(1'000'000, '{')));
}

TEST(JsonScanner, GoesThroughMembersAndElements) {
  JsonScanner json(R"( {"a" : [1, {"x":[]}, "s"], "b":{}, "c":true, "d":"t", "e": []} )");
  ASSERT_TRUE(json.enter_object());
  std::string told;
  for (JsonString key; json.next_member(key);) {
    told += key.raw;
    bool flag = false;
    JsonString string;
    if (json.enter_array()) {
      while (json.next_element()) told += "<" + std::string(json.skip()) + ">";
    } else if (json.read(flag)) {
      told += flag ? "yes" : "no";
    } else if (json.read(string)) {
      told += string.raw;
    } else {
      told += json.skip();
    }
    told += ' ';
  }
  EXPECT_TRUE(json.at_end());
  EXPECT_EQ(told, "a<1><{\"x\":[]}><\"s\"> b{} cyes dt e ");
}

TEST(JsonScanner, WhatIsEnteredIsCheckedAsStrictlyAsWhatIsSkipped) {
  for (const char* text : {R"({"a":1,})", R"({"a":1 "b":2})", R"({,"a":1})", R"({"a" 1})", R"({"a":1]})",
                           R"({"a":})", R"({"a":1}})", R"({"a":[1,]})", R"({"a":[,1]})", R"({"a":[1 2]})",
                           R"({"a":[1})", R"({"a":1)", R"({a:1})", R"({"a":[}])"}) {
    JsonScanner json(text);
    ASSERT_TRUE(json.enter_object());
    for (JsonString key; json.next_member(key);) {
      if (!json.enter_array()) {
        json.skip();
        continue;
      }
      while (json.next_element()) json.skip();
    }
    EXPECT_FALSE(json.at_end()) << text;
    EXPECT_TRUE(json.failed()) << text;
  }
}

TEST(JsonString, ReadsAsWhatIsMeant) {
  EXPECT_EQ(decoded(R"(a\"\\\/\b\f\n\r\tz)"), "a\"\\/\b\f\n\r\tz");
  EXPECT_EQ(decoded(R"(\u0041\u00fc\u20AC\ud83d\ude00)"), "A\u00fc\u20ac\U0001F600");
  EXPECT_EQ(decoded(R"(\ud83d)"), "\uFFFD");
  EXPECT_EQ(decoded(R"(\ud83d\u0041)"),
            "\uFFFD"
            "A");
  EXPECT_EQ(decoded(R"(\ude00\ud83d\ude00)"), "\uFFFD\U0001F600");
  EXPECT_EQ(decoded("\xFF"), "\xFF");
  EXPECT_EQ(decoded(std::string(100, 'x') + "\\n" + std::string(50, 'y')),
            std::string(100, 'x') + "\n" + std::string(50, 'y'));
}

TEST(JsonString, IsTheSameHoweverItIsSpelled) {
  EXPECT_TRUE((JsonString{R"(mod\u0065l)", true}.is("model")));
  EXPECT_TRUE((JsonString{R"(\u006d\u006f\u0064\u0065\u006c)", true}.is("model")));
  EXPECT_FALSE((JsonString{R"(mod\u0065ls)", true}.is("model")));
  EXPECT_TRUE((JsonString{"model", false}.is("model")));
}

TEST(JsonWholeNumber, IsReadInAllItsForms) {
  EXPECT_EQ(json_whole_number("0"), 0U);
  EXPECT_EQ(json_whole_number("128"), 128U);
  EXPECT_EQ(json_whole_number("128.0"), 128U);
  EXPECT_EQ(json_whole_number("1.28e2"), 128U);
  EXPECT_EQ(json_whole_number("9007199254740992"), std::uint64_t{1} << 53);
  for (const char* text :
       {"-1", "1.5", "1e400", "\"1\"", "null", "", "9007199254740993", "99999999999999999999"})
    EXPECT_FALSE(json_whole_number(text)) << text;
}

}  // namespace
}  // namespace waybill::upstream
