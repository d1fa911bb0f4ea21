#include "route/decision.h"

#include <array>

namespace waybill::route {

std::string_view to_string(Tier tier) noexcept {
  constexpr std::array<std::string_view, 5> kNames = {"rule", "cache", "static", "encoder", "default"};
  return kNames[static_cast<std::size_t>(tier)];
}

std::string_view to_string(Reason reason) noexcept {
  constexpr std::array<std::string_view, 8> kNames = {
      "rule", "cache", "margin", "score", "below threshold", "vetoed", "overload", "no routes"};
  return kNames[static_cast<std::size_t>(reason)];
}

}  // namespace waybill::route
