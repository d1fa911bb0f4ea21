// From logits to probabilities that mean what they say, fitted on leave-one-out logits.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace waybill::route {

// p_r = softmax(logits / temperature), in which "none of them" takes part with a constant logit: what is far from
// everything has low logits for all routes and loses to it (so the log of the sum of exponentials, a good detector of
// the out-of-scope: Liu et al. 2020, "Energy-based out-of-distribution detection", enters the one probability).
// Then Platt's map on the log-odds of the best route. Trivially copyable: it is part of the file of a head.
struct Calibration {
  float temperature = 0.5F;
  float none_logit = -std::numeric_limits<float>::infinity();
  float slope = 0.5F, intercept = 1.0F;

  static constexpr float kNoRival = 30;  // log-odds of what has none

  // Log-odds of `route` before Platt's map. Columns at and past `routes` are rivals too (labelled out-of-scope).
  [[nodiscard]] float log_odds(std::span<const float> logits, std::size_t route) const noexcept;
  [[nodiscard]] float probability(float log_odds) const noexcept;
};

// leave_one_out [columns, n]; the first `routes` columns are routes. labels [n] < columns; usable[i]: whether logits
// without the example are like those of a new text; favoured[i]: kernel_features.h. weights [n].
[[nodiscard]] Calibration calibrate(const Eigen::MatrixXf& leave_one_out, std::size_t routes,
                                    std::span<const std::uint32_t> labels, const std::vector<bool>& usable,
                                    const std::vector<bool>& favoured, const Eigen::VectorXf& weights);

// The q quantile, linear between order statistics; empty input gives 0.
[[nodiscard]] float quantile(std::vector<float> values, double q);

}  // namespace waybill::route
