// Ridge regression on features, with exact leave-one-out predictions.
#pragma once

#include <Eigen/Core>

namespace waybill::route {

struct RidgeFit {
  Eigen::MatrixXf weights;        // [features, outputs]
  Eigen::MatrixXf leave_one_out;  // [outputs, examples]: what the fit without the example predicts for it
};

// Minimises sum_i weights_i |target_i - W' phi_i|^2 + lambda |W|^2. Leaving one out needs no second fit:
// with h_i = weights_i phi_i' S^-1 phi_i, S = sum_i weights_i phi_i phi_i' + lambda I, the prediction without i is
// (f_i - h_i t_i) / (1 - h_i) (Cook & Weisberg 1982, "Residuals and Influence in Regression", 2.2.3).
// features [D, n], targets [outputs, n], weights [n] positive, lambda > 0.
[[nodiscard]] RidgeFit fit_ridge(const Eigen::MatrixXf& features, const Eigen::MatrixXf& targets, const Eigen::VectorXf& weights,
                                 double lambda, unsigned threads);

}  // namespace waybill::route
