#include "route/ridge.h"

#include <algorithm>

#include "route/linear_algebra.h"

namespace waybill::route {

using Eigen::Index;
using Eigen::MatrixXf;

RidgeFit fit_ridge(const MatrixXf& features, const MatrixXf& gram, const MatrixXf& targets,
                   const Eigen::VectorXf& weights, float lambda, unsigned threads) {
  MatrixXf factor =
      gram.size() > 0 ? gram : gram_of_rows(features * weights.cwiseSqrt().asDiagonal(), threads);
  factor.diagonal().array() += lambda;
  cholesky_in_place(factor, threads);
  MatrixXf whitened = features;  // L^-1 phi: its squared length is phi' S^-1 phi
  solve_lower(factor, whitened, threads);

  RidgeFit fit;
  const MatrixXf weighted = (targets * weights.asDiagonal()).transpose();
  MatrixXf solution = product(whitened, weighted, threads);  // L^-1 sum_i weights_i phi_i t_i'
  fit.fitted = transposed_product(solution, whitened, threads);
  factor.triangularView<Eigen::Lower>().transpose().solveInPlace(solution);
  fit.weights = solution.transpose();
  fit.leave_one_out.resizeLike(targets);
  for (Index i = 0; i < features.cols(); ++i) {
    const float leverage = std::min(weights[i] * whitened.col(i).squaredNorm(), 0.9999F);
    fit.leave_one_out.col(i) = (fit.fitted.col(i) - leverage * targets.col(i)) / (1.0F - leverage);
  }
  return fit;
}

RidgeFit fit_kernel_ridge(const MatrixXf& kernel, const MatrixXf& targets, const Eigen::VectorXf& weights,
                          float lambda, unsigned threads) {
  MatrixXf factor = kernel;
  factor.diagonal().array() += lambda / weights.array();
  cholesky_in_place(factor, threads);
  const MatrixXf inverse = inverse_of_lower(factor, threads);  // G^-1 = inverse' inverse

  RidgeFit fit;
  const MatrixXf half = product(inverse, targets.transpose(), threads);
  fit.weights = transposed_product(half, inverse, threads);
  const Eigen::RowVectorXf diagonal = inverse.colwise().squaredNorm();
  fit.fitted = targets - fit.weights * (lambda / weights.array()).matrix().asDiagonal();
  fit.leave_one_out = targets - fit.weights * diagonal.cwiseInverse().asDiagonal();
  return fit;
}

}  // namespace waybill::route
