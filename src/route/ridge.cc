#include "route/ridge.h"

#include <algorithm>

#include "base/parallel.h"
#include "route/kernel_features.h"

namespace waybill::route {

using Eigen::Index;

RidgeFit fit_ridge(const Eigen::MatrixXf& features, const Eigen::MatrixXf& targets, const Eigen::VectorXf& weights,
                   double lambda, unsigned threads) {
  const Eigen::MatrixXd factor = cholesky_of(weighted_gram(features, weights, threads), lambda);
  Eigen::MatrixXd solution = (features * (weights.asDiagonal() * targets.transpose())).cast<double>();
  factor.triangularView<Eigen::Lower>().solveInPlace(solution);
  factor.triangularView<Eigen::Lower>().transpose().solveInPlace(solution);

  RidgeFit fit{.weights = solution.cast<float>(), .leave_one_out = Eigen::MatrixXf(targets.rows(), targets.cols())};
  const Eigen::MatrixXf lower = factor.cast<float>();
  constexpr Index kBlock = 256;
  parallel_for(static_cast<std::size_t>((features.cols() + kBlock - 1) / kBlock), threads, [&](std::size_t b) {
    const Index first = static_cast<Index>(b) * kBlock, columns = std::min(kBlock, features.cols() - first);
    Eigen::MatrixXf block = features.middleCols(first, columns);
    const Eigen::MatrixXf fitted = fit.weights.transpose() * block;
    lower.triangularView<Eigen::Lower>().solveInPlace(block);
    for (Index i = 0; i < columns; ++i) {
      const float leverage = std::min(weights[first + i] * block.col(i).squaredNorm(), 0.9999F);
      fit.leave_one_out.col(first + i) = (fitted.col(i) - leverage * targets.col(first + i)) / (1.0F - leverage);
    }
  });
  return fit;
}

}  // namespace waybill::route
