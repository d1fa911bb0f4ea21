#include "config/price_table.h"

#include <algorithm>

#include "base/check.h"
#include "config/config.h"

namespace waybill::config {
namespace {

bool is_digits(std::string_view text) {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

const std::vector<Price>& shipped_prices() {
  static const std::vector<Price> prices = [] {
    const auto config = parse(shipped_prices_yaml(), {.name = "prices.yaml", .folder = {}, .read_file = {}});
    WAYBILL_CHECK(config.has_value());
    return config->prices;
  }();
  return prices;
}

std::string_view without_date(std::string_view model) noexcept {
  constexpr std::size_t kLong = 11;  // -2024-08-06
  constexpr std::size_t kShort = 9;  // -20250514
  if (model.size() > kLong) {
    const std::string_view end = model.substr(model.size() - kLong);
    if (end[0] == '-' && end[5] == '-' && end[8] == '-' && end[1] == '2' && is_digits(end.substr(1, 4)) &&
        is_digits(end.substr(6, 2)) && is_digits(end.substr(9))) {
      return model.substr(0, model.size() - kLong);
    }
  }
  if (model.size() > kShort) {
    const std::string_view end = model.substr(model.size() - kShort);
    if ((end[0] == '-' || end[0] == '@') && end[1] == '2' && is_digits(end.substr(1)))
      return model.substr(0, model.size() - kShort);
  }
  return model;
}

PriceTable::PriceTable(const std::vector<Price>& own) : own_(own) {
  for (const Price& price : own_) by_name_.emplace(price.model, &price);
  for (const Price& price : shipped_prices()) shipped_by_name_.emplace(price.model, &price);
}

const Price* PriceTable::find(const Prices& prices, std::string_view model) noexcept {
  auto found = prices.find(model);
  if (found == prices.end()) found = prices.find(without_date(model));
  return found != prices.end() ? found->second : nullptr;
}

const Price* PriceTable::find(std::string_view model) const noexcept {
  const Price* price = find(by_name_, model);
  return price != nullptr ? price : find(shipped_by_name_, model);
}

double cost(const Price& price, double input, double cached_input, double output) noexcept {
  constexpr double kMillion = 1e6;
  const double cached = std::min(cached_input, input);
  return ((input - cached) * price.input + cached * price.cached_input.value_or(price.input) +
          output * price.output) /
         kMillion;
}

}  // namespace waybill::config
