#include "telemetry/record.h"

#include <cstddef>

namespace waybill::telemetry {
namespace {

constexpr std::array<std::string_view, kOutcomes> kOutcomeNames = {"completed", "failed", "rejected",
                                                                   "cancelled", "expired"};
constexpr std::array<std::string_view, kStages> kStageNames = {"read",    "admit",       "queue", "tokenize",
                                                               "encode",  "decide",      "lane",  "connect",
                                                               "headers", "first_token", "relay", "write"};

}  // namespace

std::string_view to_string(Outcome outcome) noexcept {
  return kOutcomeNames[static_cast<std::size_t>(outcome)];
}
std::string_view to_string(Stage stage) noexcept { return kStageNames[static_cast<std::size_t>(stage)]; }

std::optional<Outcome> parse_outcome(std::string_view text) noexcept {
  for (std::size_t i = 0; i < kOutcomes; ++i) {
    if (kOutcomeNames[i] == text) return static_cast<Outcome>(i);
  }
  return std::nullopt;
}

}  // namespace waybill::telemetry
