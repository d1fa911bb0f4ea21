// Fits a calibration on leave-one-out logits. Apart from calibration.h, which everything that routes
// includes: Eigen is a second's work for the compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <Eigen/Core>

#include "route/calibration.h"

namespace waybill::route {

// leave_one_out [columns, n]; the first `routes` columns are routes. labels [n] < columns; usable[i]: whether
// logits without the example are like those of a new text; favoured[i]: kernel_features.h. weights [n].
[[nodiscard]] Calibration calibrate(const Eigen::MatrixXf& leave_one_out, std::size_t routes,
                                    std::span<const std::uint32_t> labels, const std::vector<bool>& usable,
                                    const std::vector<bool>& favoured, const Eigen::VectorXf& weights);

// The q quantile, linear between order statistics; empty input gives 0.
[[nodiscard]] float quantile(std::vector<float> values, double q);

}  // namespace waybill::route
