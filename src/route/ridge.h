// Ridge regression on features or on a kernel, with exact leave-one-out predictions.
#pragma once

#include <Eigen/Core>

namespace waybill::route {

// Minimises sum_i weights_i |target_i - f(x_i)|^2 + lambda |f|^2.
struct RidgeFit {
  Eigen::MatrixXf weights;        // on features: [outputs, D]; on a kernel: [outputs, n], of k(x_i, .)
  Eigen::MatrixXf fitted;         // [outputs, n]: f(x_i)
  Eigen::MatrixXf leave_one_out;  // [outputs, n]: what the fit without the example predicts for it
};

// f = W' phi. Leaving one out needs no second fit: with h_i = weights_i phi_i' S^-1 phi_i, S = sum_i
// weights_i phi_i phi_i'
// + lambda I, the prediction without i is (f_i - h_i t_i) / (1 - h_i) (Cook & Weisberg 1982, "Residuals and
// Influence in Regression", 2.2.3). features [D, n]; gram: features features', or empty, and then it is
// computed; needed with weights that differ. targets [outputs, n], weights [n] positive, lambda > 0.
[[nodiscard]] RidgeFit fit_ridge(const Eigen::MatrixXf& features, const Eigen::MatrixXf& gram,
                                 const Eigen::MatrixXf& targets, const Eigen::VectorXf& weights, float lambda,
                                 unsigned threads);

// f = sum_i a_i k(x_i, .), on the n by n kernel matrix of the examples. With G = K + lambda diag(1 /
// weights), a = G^-1 t and the prediction without i is t_i - a_i / (G^-1)_ii (the same identity in the dual).
[[nodiscard]] RidgeFit fit_kernel_ridge(const Eigen::MatrixXf& kernel, const Eigen::MatrixXf& targets,
                                        const Eigen::VectorXf& weights, float lambda, unsigned threads);

}  // namespace waybill::route
