#include "cli/charts.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace waybill::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Charts, NamesFromOutsideCannotBecomeMarkup) {
  HtmlPage page("<script>alert(1)</script>", "a & b");
  page.add_section("<b>", "\"note\"", bar_chart({"x"}, {{.label = "<img>", .values = {0.5}, .text = "<i>"}}));
  page.add_section("map", "", heat_map({"<r>", "c", {"<u>"}, {"<u>"}, {{3}}}));
  EXPECT_THAT(page.text(), Not(HasSubstr("<script>")));
  EXPECT_THAT(page.text(), Not(HasSubstr("<img>")));
  EXPECT_THAT(page.text(), Not(HasSubstr("<u>")));
  EXPECT_THAT(page.text(), HasSubstr("&lt;script&gt;"));
}

TEST(Charts, ThePageLoadsNothingAndKnowsLightAndDark) {
  const std::string text = HtmlPage("t", "s").text();
  for (const char* word : {"http", "src=", "@import", "url("}) EXPECT_THAT(text, Not(HasSubstr(word)));
  EXPECT_THAT(text, HasSubstr("prefers-color-scheme:dark"));
}

TEST(Charts, PointsStandWhereTheirValuesAre) {
  const std::string plot =
      line_plot({.label = "x"}, {.label = "y"}, {{.name = "s", .points = {{0, 0}, {1, 1}}}}, true);
  EXPECT_THAT(plot, HasSubstr("points=\"58.0,310.0 488.0,10.0 \""));
}

TEST(Charts, ShadesAreSharesOfTheRow) {
  const std::string map = heat_map({"", "", {"a", "b"}, {"a", "b"}, {{4, 0}, {1, 3}}});
  EXPECT_THAT(map, HasSubstr("a → a: 4 (100 %)"));
  EXPECT_THAT(map, HasSubstr("b → a: 1 (25 %)"));
  EXPECT_THAT(map, Not(HasSubstr("a → b")));
}

TEST(Charts, HundredsOfRoutesStillFit) {
  const std::size_t n = 300;
  const std::vector<std::string> names(n, "route");
  std::vector<std::vector<std::size_t>> counts(n, std::vector<std::size_t>(n));
  for (std::size_t i = 0; i < n; ++i) counts[i][i] = 1;
  EXPECT_LT(heat_map({"", "", names, names, counts}).size(), 100'000U);
}

TEST(Charts, EmptyDataDrawsAnEmptyPlot) {
  EXPECT_THAT(bar_chart({}, {}), HasSubstr("<svg"));
  EXPECT_THAT(heat_map({}), HasSubstr("<svg"));
  EXPECT_THAT(line_plot({}, {}, {}, false), HasSubstr("<svg"));
}

}  // namespace
}  // namespace waybill::cli
