// What a model costs: the configuration's `prices` before the table that comes with the program.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "config/upstream_config.h"

namespace waybill::config {

[[nodiscard]] std::string_view shipped_prices_yaml() noexcept;  // data/prices/prices.yaml
[[nodiscard]] const std::vector<Price>& shipped_prices();       // read from it once

// "gpt-4o" for "gpt-4o-2024-08-06", "claude-sonnet-4" for "claude-sonnet-4-20250514" and
// "claude-sonnet-4@20250514"; any other name as it is.
[[nodiscard]] std::string_view without_date(std::string_view model) noexcept;

// Immutable, thread-safe.
class PriceTable {
 public:
  explicit PriceTable(const std::vector<Price>& own = {});
  PriceTable(const PriceTable&) = delete;
  PriceTable& operator=(const PriceTable&) = delete;

  // Among the configuration's own prices by name, then by the name without its date; then in the same way
  // among those that come with the program. Null when nobody knows. Stays as long as the table.
  [[nodiscard]] const Price* find(std::string_view model) const noexcept;

 private:
  using Prices = std::unordered_map<std::string_view, const Price*>;
  static const Price* find(const Prices& prices, std::string_view model) noexcept;

  std::vector<Price> own_;
  Prices by_name_;          // of own_
  Prices shipped_by_name_;  // of shipped_prices()
};

// In US dollars. `cached_input` tokens are counted among `input` too, as in OpenAI's usage.
[[nodiscard]] double cost(const Price& price, double input, double cached_input, double output) noexcept;

}  // namespace waybill::config
