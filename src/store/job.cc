#include "store/job.h"

#include <array>

namespace waybill::store {
namespace {

constexpr std::array<std::string_view, kStates> kNames = {
    "queued", "scheduled", "running", "held", "completed", "failed", "cancelled", "expired", "dead"};

}  // namespace

std::string_view to_string(State state) noexcept { return kNames[static_cast<std::size_t>(state)]; }

std::optional<State> parse_state(std::string_view text) noexcept {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == text) return static_cast<State>(i);
  }
  return std::nullopt;
}

}  // namespace waybill::store
