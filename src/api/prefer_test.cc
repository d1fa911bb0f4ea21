#include "api/prefer.h"

#include <initializer_list>

#include <gtest/gtest.h>

namespace waybill::api {
namespace {

using std::chrono::seconds;

Preference read(std::initializer_list<std::string_view> values) {
  http::Request request;
  for (const std::string_view value : values) request.headers.push_back({"Prefer", value});
  return read_preference(request);
}

TEST(Prefer, NothingIsPreferredWithoutAHeader) {
  EXPECT_FALSE(read({}).respond_async);
  EXPECT_FALSE(read({}).wait);
}

TEST(Prefer, ReadsWhatRfc7240Shows) {
  EXPECT_TRUE(read({"respond-async"}).respond_async);
  const Preference both = read({"respond-async, wait=10"});
  EXPECT_TRUE(both.respond_async);
  EXPECT_EQ(both.wait, Duration(seconds(10)));
  EXPECT_EQ(read({"respond-async", "wait=7"}).wait, Duration(seconds(7)));
  EXPECT_TRUE(read({"return=minimal; foo=\"bar\", Respond-Async ; x=1"}).respond_async);
  EXPECT_EQ(read({"wait = \"5\""}).wait, Duration(seconds(5)));
}

TEST(Prefer, TheFirstCounts) {
  EXPECT_EQ(read({"wait=1, wait=2"}).wait, Duration(seconds(1)));
  EXPECT_FALSE(read({"respond-async=no, respond-async"}).respond_async);
}

TEST(Prefer, WhatCannotBeReadIsLeftAside) {
  for (const std::string_view value :
       {"wait", "wait=", "wait=soon", "wait=-1", "wait=1.5", "wait=1s", ",,;=", "="})
    EXPECT_FALSE(read({value}).wait) << value;
  EXPECT_FALSE(read({"respond-asynchronously"}).respond_async);
  EXPECT_FALSE(read({R"(foo="unterminated, respond-async)"}).respond_async);
}

TEST(Prefer, CommasInQuotesAreText) {
  EXPECT_FALSE(read({R"(foo="a, respond-async")"}).respond_async);
  EXPECT_FALSE(read({R"(foo="a\", respond-async, \"b")"}).respond_async);
  EXPECT_TRUE(read({R"(foo="a\\", respond-async)"}).respond_async);
  EXPECT_EQ(read({R"(foo="a,b"; x=",", wait=4)"}).wait, Duration(seconds(4)));
}

TEST(Prefer, SaysWhatWasApplied) {
  EXPECT_EQ(applied(read({"respond-async"})), "respond-async");
  EXPECT_EQ(applied(read({"respond-async, wait=10"})), "respond-async, wait=10");
}

}  // namespace
}  // namespace waybill::api
