#include "base/suggest.h"

#include <array>

#include <gtest/gtest.h>

namespace waybill {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"routes", "encoder", "default_route", "tiers"};

TEST(Suggest, FindsTheNameBehindATypingError) {
  EXPECT_EQ(closest_name("ruotes", kNames), "routes");
  EXPECT_EQ(closest_name("encodr", kNames), "encoder");
  EXPECT_EQ(closest_name("default-route", kNames), "default_route");
}

TEST(Suggest, SaysNothingWhenNothingIsNear) {
  EXPECT_EQ(closest_name("webhook", kNames), "");
  EXPECT_EQ(did_you_mean("webhook", kNames), "");
}

TEST(Suggest, PutsTheNameIntoAQuestion) {
  EXPECT_EQ(did_you_mean("tier", kNames), "; did you mean \"tiers\"?");
}

}  // namespace
}  // namespace waybill
