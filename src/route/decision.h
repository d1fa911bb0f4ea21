// A decision: which route a prompt takes, and why.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace waybill::route {

// What decided. Cheapest first.
enum class Tier : std::uint8_t { kRule, kCache, kStatic, kEncoder, kDefault };

// Why it came out as it did.
enum class Reason : std::uint8_t {
  kRule,            // a rule named the route
  kCache,           // the same prompt was decided before
  kMargin,          // the static tier was far enough from the border to agree with the encoder
  kScore,           // the best route is above its threshold
  kBelowThreshold,  // the best route is not: default route
  kVetoed,          // rules forbade the better routes
  kOverload,        // the static tier alone, because the encoder could not have answered in time
  kNoRoutes,        // nothing to choose from
};

[[nodiscard]] std::string_view to_string(
    Tier tier) noexcept;  // "rule", "cache", "static", "encoder", "default"
[[nodiscard]] std::string_view to_string(Reason reason) noexcept;  // "below threshold", ...

struct ScoredRoute {
  std::uint32_t route = 0;  // index into Router::routes()
  float score = 0;          // calibrated probability
};

// Views point into the router, which must outlive the decision.
struct Decision {
  static constexpr std::uint32_t kNoRoute = 0xFFFFFFFF;

  std::uint32_t index = kNoRoute;  // into Router::routes(); kNoRoute for a default route without utterances
  std::string_view route;
  std::string_view model;
  float score = 0;  // calibrated probability that the best route is right; 1 for a rule
  Tier tier = Tier::kEncoder;
  Reason reason = Reason::kScore;
  bool degraded = false;       // decided by a cheaper tier than the policy would have liked
  std::string_view rule = {};  // the rule that decided or vetoed, if one did
};

struct NearestUtterance {
  std::uint32_t route = 0;
  std::string_view text;
  float similarity = 0;  // cosine
};

// What `--explain` shows.
struct Explanation {
  Decision decision;
  float threshold = 0;                       // of the best route
  float margin = 0;                          // static tier: how far the best route is ahead; 0 for the others
  float margin_threshold = 0;                // static tier: from which it decides by itself
  std::vector<ScoredRoute> runners_up = {};  // best first, the winner included
  std::vector<NearestUtterance> nearest = {};  // nearest first
};

}  // namespace waybill::route
