#include "upstream/json_members.h"

#include <string>

#include <gtest/gtest.h>

namespace waybill::upstream {
namespace {

std::string spliced(std::string_view text, std::initializer_list<JsonEdit> edits) {
  JsonMembers members;
  const Status parsed = members.parse(text);
  EXPECT_TRUE(parsed) << text;
  std::string out = "what was there before";
  members.splice(edits, out);
  return out;
}

TEST(JsonMembers, FindsTheLastHoweverItIsSpelled) {
  JsonMembers members;
  ASSERT_TRUE(members.parse(R"( { "model" : "a", "mod\u0065l":"b" , "n" : [1, {"model":3}] } )"));
  ASSERT_NE(members.find("model"), nullptr);
  EXPECT_EQ(members.find("model")->value, "\"b\"");
  EXPECT_EQ(members.find("n")->value, R"([1, {"model":3}])");
  EXPECT_EQ(members.find("stream"), nullptr);
  EXPECT_EQ(members.all().size(), 3U);
}

TEST(JsonMembers, RefusesWhatIsNotAnObject) {
  JsonMembers members;
  ASSERT_TRUE(members.parse(R"({"a":1})"));
  for (const char* text :
       {"", "[]", "1", "\"a\"", "{\"a\":1", "{\"a\":1}x", "{\"a\":1}{}", "{\"a\":01}", "{a:1}", "null"}) {
    const Status parsed = members.parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidInput);
    EXPECT_TRUE(members.all().empty());
  }
  EXPECT_NE(members.parse("{\"a\":1,}").error().message.find("byte 7"), std::string::npos);
}

TEST(JsonMembers, BoundsTheirNumber) {
  std::string text = "{\"a\":1";
  for (std::size_t i = 1; i < JsonMembers::kMaxMembers; ++i) text += ",\"a\":1";
  JsonMembers members;
  EXPECT_TRUE(members.parse(text + "}"));
  EXPECT_FALSE(members.parse(text + ",\"a\":1}"));
}

TEST(JsonMembers, ReplacesInPlace) {
  EXPECT_EQ(spliced(R"( {"a": 1.50 , "model" : "x" ,"z":"\u0041"} )", {{"model", "\"y\""}}),
            R"( {"a": 1.50 , "model" : "y" ,"z":"\u0041"} )");
  EXPECT_EQ(spliced(R"({"model":1,"a":2,"mod\u0065l":3})", {{"model", "9"}}),
            R"({"model":9,"a":2,"mod\u0065l":9})");
}

TEST(JsonMembers, InsertsLast) {
  EXPECT_EQ(spliced("{}", {{"a", "1"}}), R"({"a":1})");
  EXPECT_EQ(spliced(" { } ", {{"a", "1"}, {"b", "2"}}), R"( {"a":1,"b":2 } )");
  EXPECT_EQ(spliced(R"({"x":{} })", {{"a", "1"}}), R"({"x":{},"a":1 })");
}

TEST(JsonMembers, RemovesWithOneComma) {
  const std::string_view text = R"({ "a":1, "b":2 , "c":3 })";
  EXPECT_EQ(spliced(text, {{"a", {}}}), R"({ "b":2 , "c":3 })");
  EXPECT_EQ(spliced(text, {{"b", {}}}), R"({ "a":1 , "c":3 })");
  EXPECT_EQ(spliced(text, {{"c", {}}}), R"({ "a":1, "b":2 })");
  EXPECT_EQ(spliced(text, {{"a", {}}, {"b", {}}}), R"({ "c":3 })");
  EXPECT_EQ(spliced(text, {{"a", {}}, {"c", {}}}), R"({ "b":2 })");
  EXPECT_EQ(spliced(text, {{"b", {}}, {"c", {}}}), R"({ "a":1 })");
  EXPECT_EQ(spliced(text, {{"a", {}}, {"b", {}}, {"c", {}}}), R"({  })");
  EXPECT_EQ(spliced(text, {{"a", {}}, {"b", {}}, {"c", {}}, {"d", "4"}}), R"({ "d":4 })");
  EXPECT_EQ(spliced(text, {{"x", {}}}), text);
}

TEST(JsonMembers, DoesSeveralThingsAtOnce) {
  EXPECT_EQ(spliced(R"({"a":1,"b":2,"c":3})", {{"a", {}}, {"b", "20"}, {"d", "4"}, {"c", "30"}}),
            R"({"b":20,"c":30,"d":4})");
}

}  // namespace
}  // namespace waybill::upstream
