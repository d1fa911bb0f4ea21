#include "config/price_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"

namespace waybill::config {
namespace {

double input_of(const PriceTable& table, std::string_view model) {
  const Price* price = table.find(model);
  return price != nullptr ? price->input : -1;
}

TEST(PriceTable, ComesWithPricesThatAreReadAsAConfiguration) {
  const auto config = parse(shipped_prices_yaml());
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_GE(shipped_prices().size(), 30U);
  for (const Price& price : shipped_prices()) {
    EXPECT_GT(price.input, 0) << price.model;
    EXPECT_LE(price.cached_input.value_or(0), price.input) << price.model;
    EXPECT_TRUE(price.output == 0 || price.output >= price.input) << price.model;
  }
}

TEST(PriceTable, FindsANameAndThenTheNameWithoutItsDate) {
  const PriceTable table;
  EXPECT_EQ(input_of(table, "gpt-4o"), 2.5);
  EXPECT_EQ(input_of(table, "gpt-4o-2024-08-06"), 2.5);
  EXPECT_EQ(input_of(table, "gpt-4o-2024-05-13"), 5);  // has a line of its own
  EXPECT_EQ(input_of(table, "claude-sonnet-4-20250514"), 3);
  EXPECT_EQ(input_of(table, "claude-opus-4-5@20251101"), 5);
  EXPECT_EQ(table.find("gpt-4o-latest"), nullptr);
  EXPECT_EQ(table.find("gpt"), nullptr);
  EXPECT_EQ(table.find(""), nullptr);
}

TEST(PriceTable, AsksTheConfigurationFirst) {
  const PriceTable table(
      std::vector<Price>{{.model = "gpt-4o", .input = 1, .cached_input = {}, .output = 2, .position = {}},
                         {.model = "local", .input = 0, .cached_input = {}, .output = 0, .position = {}}});
  EXPECT_EQ(input_of(table, "gpt-4o"), 1);
  EXPECT_EQ(input_of(table, "gpt-4o-2024-05-13"), 1);  // before the line that comes with the program
  EXPECT_EQ(input_of(table, "local"), 0);
  EXPECT_EQ(input_of(table, "gpt-4o-mini"), 0.15);
}

TEST(PriceTable, KnowsDatesAtTheEndOfAName) {
  EXPECT_EQ(without_date("gpt-4o-2024-08-06"), "gpt-4o");
  EXPECT_EQ(without_date("claude-3-5-haiku-20241022"), "claude-3-5-haiku");
  EXPECT_EQ(without_date("claude-3-5-haiku@20241022"), "claude-3-5-haiku");
  for (const std::string_view other :
       {"gpt-4-0613", "mistral-large-2411", "-2024-08-06", "@20241022", "a-12345678", "gpt-4o-2024_08_06",
        "gpt-4o-2024-08-0x", "a-2024102x", "o3", ""})
    EXPECT_EQ(without_date(other), other);
}

TEST(PriceTable, CountsTokensOnce) {
  const Price price = {.model = "m", .input = 2, .cached_input = 0.5, .output = 8, .position = {}};
  EXPECT_DOUBLE_EQ(cost(price, 1'000'000, 0, 0), 2);
  EXPECT_DOUBLE_EQ(cost(price, 1'000'000, 400'000, 500'000), 0.6 * 2 + 0.4 * 0.5 + 0.5 * 8);
  EXPECT_DOUBLE_EQ(cost(price, 10, 20, 0), 10 * 0.5e-6);  // a provider's usage may say anything
  const Price plain = {.model = "m", .input = 2, .cached_input = {}, .output = 8, .position = {}};
  EXPECT_DOUBLE_EQ(cost(plain, 1'000'000, 400'000, 0), 2);
}

}  // namespace
}  // namespace waybill::config
