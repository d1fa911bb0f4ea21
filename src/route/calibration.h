// From logits to probabilities that mean what they say; calibrate.h fits it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace waybill::route {

// p_r = softmax(logits / temperature), in which "none of them" takes part with a constant logit: what is far
// from everything has low logits for all routes and loses to it (so the log of the sum of exponentials, a
// good detector of the out-of-scope: Liu et al. 2020, "Energy-based out-of-distribution detection", enters
// the one probability). Then Platt's map on the log-odds of the best route. Trivially copyable: it is part of
// the file of a head.
struct Calibration {
  float temperature = 0.5F;
  float none_logit = -std::numeric_limits<float>::infinity();
  float slope = 0.5F, intercept = 1.0F;

  static constexpr float kNoRival = 30;  // log-odds of what has none

  // Log-odds of `route` before Platt's map. Columns at and past `routes` are rivals too (labelled
  // out-of-scope).
  [[nodiscard]] float log_odds(std::span<const float> logits, std::size_t route) const noexcept;
  [[nodiscard]] float probability(float log_odds) const noexcept;
};

}  // namespace waybill::route
