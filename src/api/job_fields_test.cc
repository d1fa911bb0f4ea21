#include "api/job_fields.h"

#include <gtest/gtest.h>

namespace waybill::api {
namespace {

TEST(JobFields, TimesAreSecondsOrRfc3339) {
  EXPECT_EQ(read_time("t", "1764504000"), 1764504000'000000);
  EXPECT_EQ(read_time("t", "1764504000.25"), 1764504000'250000);
  EXPECT_EQ(read_time("t", R"("2025-11-30T12:00:00Z")"), 1764504000'000000);
  EXPECT_EQ(read_time("t", R"("2025-11-30T13:30:00.5+01:30")"), 1764504000'500000);
  EXPECT_EQ(read_time("t", R"("2025-11-30T04:00:00-08:00")"), 1764504000'000000);
  EXPECT_EQ(read_time("t", R"("2024-02-29T00:00:00Z")"), 1709164800'000000);
}

TEST(JobFields, WhatIsNoTimeIsToldWithItsField) {
  for (const std::string_view raw :
       {"-1", "0", "1e300", "true", "null", R"("")", R"("soon")", R"("2025-11-30")",
        R"("2025-11-31T12:00:00Z")", R"("2025-02-29T00:00:00Z")", R"("2025-11-30T24:00:00Z")",
        R"("2025-11-30T12:00:00")", R"("2025-11-30T12:00:00.Z")", R"("2025-11-30T12:00:00+1")",
        R"("2025-11-30T12:00:00Zx")"}) {
    const auto time = read_time("run_after", raw);
    ASSERT_FALSE(time) << raw;
    EXPECT_EQ(time.error().field, "run_after");
  }
}

TEST(JobFields, SecondsAreMoreThanNone) {
  EXPECT_EQ(read_seconds("s", "1.5", 10), 1'500'000);
  for (const std::string_view raw : {"0", "-1", "10.001", "\"1\"", "1s"})
    EXPECT_FALSE(read_seconds("s", raw, 10)) << raw;
}

TEST(JobFields, WholeNumbersHaveBounds) {
  EXPECT_EQ(read_whole("n", "9", 0, 9), 9);
  for (const std::string_view raw : {"10", "-1", "1.5", "\"1\"", "true"})
    EXPECT_FALSE(read_whole("n", raw, 0, 9)) << raw;
}

TEST(JobFields, MetadataIsAFewShortStrings) {
  EXPECT_TRUE(check_metadata("metadata", R"({"a": "b", "batch": "7", "leer": ""})"));
  EXPECT_TRUE(check_metadata("metadata", "{\"k\": \"" + std::string(512, 'x') + "\"}"));
  for (const auto& [raw, field] : {std::pair<std::string, std::string_view>{"[]", "metadata"},
                                   {R"({"a": 1})", "metadata.a"},
                                   {R"({"a": "b", "a": "c"})", "metadata.a"},
                                   {R"({"": "b"})", "metadata"},
                                   {"{\"a\": \"\xff\"}", "metadata.a"},
                                   {"{\"a\": \"" + std::string(513, 'x') + "\"}", "metadata.a"},
                                   {"{\"" + std::string(65, 'x') + "\": \"\"}", "metadata"}}) {
    const Status good = check_metadata("metadata", raw);
    ASSERT_FALSE(good) << raw;
    EXPECT_EQ(good.error().field, field);
  }
  std::string many = "{";
  for (int i = 0; i < 17; ++i) many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":\"\"";
  EXPECT_FALSE(check_metadata("metadata", many + "}"));
}

TEST(JobFields, LengthsAreCountedInCharacters) {
  std::string wide;
  for (int i = 0; i < 512; ++i) wide += "é";
  EXPECT_TRUE(check_metadata("metadata", "{\"k\": \"" + wide + "\"}"));
  EXPECT_FALSE(check_metadata("metadata", "{\"k\": \"" + wide + "é\"}"));
}

}  // namespace
}  // namespace waybill::api
