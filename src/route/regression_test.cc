// The two regressions of the head, and the linear algebra under them.
#include <cmath>
#include <vector>

#include <Eigen/Cholesky>
#include <gtest/gtest.h>

#include "route/linear_algebra.h"
#include "route/ridge.h"
#include "route/scattered_texts_test.h"
#include "route/softmax_regression.h"

namespace waybill::route {
namespace {

using Eigen::Index;
using Eigen::MatrixXf;

// What the kernel k(x, x) is when it is built without blocks or threads.
MatrixXf plain_kernel(const MatrixXf& a, const MatrixXf& b) {
  return ((a.transpose() * b).array() * 2 - 2).exp();
}

// Positive definite and of a size that is no multiple of any block.
MatrixXf positive_definite(Index size) {
  const MatrixXf a = MatrixXf::Random(size, size);
  return a * a.transpose() / static_cast<float>(size) + MatrixXf::Identity(size, size);
}

TEST(LinearAlgebraTest, AgreesWithEigenForSizesAcrossBlocks) {
  for (const Index size : {1, 7, 192, 193, 450}) {
    const MatrixXf matrix = positive_definite(size), b = MatrixXf::Random(size, 5);
    MatrixXf lower = matrix;
    lower.triangularView<Eigen::StrictlyUpper>().setConstant(1e9F);  // must not be read
    cholesky_in_place(lower, 2);
    EXPECT_LT((lower * lower.transpose() - matrix).norm(), 1e-4F * matrix.norm()) << size;
    const MatrixXf inverse = inverse_of_lower(lower, 2);
    EXPECT_LT((inverse * lower - MatrixXf::Identity(size, size)).norm(),
              1e-4F * std::sqrt(static_cast<float>(size)))
        << size;
    EXPECT_LT((gram_of_lower(inverse, 2) * matrix - MatrixXf::Identity(size, size)).norm(),
              1e-3F * std::sqrt(static_cast<float>(size)))
        << size;
    EXPECT_LT((gram_of_rows(matrix, 2) - matrix * matrix.transpose()).norm(),
              1e-4F * (matrix * matrix).norm())
        << size;
    EXPECT_LT((product(matrix, b, 2) - matrix * b).norm(), 1e-4F * b.norm() * matrix.norm()) << size;
    EXPECT_LT((product(b.transpose(), matrix, 2) - b.transpose() * matrix).norm(),
              1e-4F * b.norm() * matrix.norm())
        << size;
    EXPECT_LT((transposed_product(matrix, b, 2) - matrix.transpose() * b).norm(),
              1e-4F * b.norm() * matrix.norm())
        << size;
    EXPECT_LT((transposed_product(b, matrix, 2) - b.transpose() * matrix).norm(),
              1e-4F * b.norm() * matrix.norm())
        << size;
    MatrixXf x = b;
    solve_lower(lower, x, 2);
    EXPECT_LT((lower * x - b).norm(), 1e-4F * b.norm()) << size;
  }
}

std::vector<Index> all_but(Index left, Index count) {
  std::vector<Index> rest;
  for (Index i = 0; i < count; ++i) {
    if (i != left) rest.push_back(i);
  }
  return rest;
}

TEST(RidgeTest, LeaveOneOutIsWhatAFitWithoutTheExamplePredicts) {
  const Texts texts = std::move(Texts(3).add(0, 9).add(1, 4).add(2, 1));
  const auto n = static_cast<Index>(texts.labels.size());
  const MatrixXf x = texts.matrix(), targets = MatrixXf::Random(3, n);
  const Eigen::VectorXf weights = Eigen::VectorXf::LinSpaced(n, 0.2F, 3.0F);
  const RidgeFit on_kernel = fit_kernel_ridge(plain_kernel(x, x), targets, weights, 0.2F, 1);
  // x itself as features: the kernel of their ridge regression is the dot product.
  const RidgeFit on_features = fit_ridge(x, {}, targets, weights, 0.2F, 1);
  for (Index left = 0; left < n; ++left) {
    const std::vector<Index> rest = all_but(left, n);
    const MatrixXf others = x(Eigen::all, rest), one = x.col(left);
    const auto predicted = [&](const MatrixXf& kernel, const MatrixXf& to_one) -> Eigen::VectorXf {
      Eigen::MatrixXd k = kernel.cast<double>();
      k.diagonal() += (0.2 / weights(rest).cast<double>().array()).matrix();
      const Eigen::MatrixXd alpha = k.llt().solve(targets(Eigen::all, rest).transpose().cast<double>());
      return (alpha.transpose() * to_one.cast<double>()).cast<float>();
    };
    const Eigen::VectorXf with_kernel = predicted(plain_kernel(others, others), plain_kernel(others, one));
    EXPECT_LT((with_kernel - on_kernel.leave_one_out.col(left)).cwiseAbs().maxCoeff(), 1e-3F) << left;
    const Eigen::VectorXf with_features = predicted(others.transpose() * others, others.transpose() * one);
    EXPECT_LT((with_features - on_features.leave_one_out.col(left)).cwiseAbs().maxCoeff(), 1e-3F) << left;
  }
  EXPECT_LT((on_kernel.weights * plain_kernel(x, x) - on_kernel.fitted).norm(), 1e-3F);
  EXPECT_LT((on_features.weights * x - on_features.fitted).norm(), 1e-3F);
}

TEST(RidgeTest, AGramThatIsGivenChangesNothingWhenAllExamplesCountAlike) {
  const Texts texts = std::move(Texts(3).add(0, 9).add(1, 4));
  const MatrixXf x = texts.matrix(), targets = MatrixXf::Random(2, x.cols());
  const Eigen::VectorXf ones = Eigen::VectorXf::Ones(x.cols());
  const MatrixXf given = fit_ridge(x, gram_of_rows(x, 1), targets, ones, 0.2F, 1).weights;
  EXPECT_LT((given - fit_ridge(x, {}, targets, ones, 0.2F, 1).weights).norm(), 1e-4F);
}

SoftmaxOptions to_the_end() { return {.iterations = 300, .threads = 1, .keep_going = {}}; }

MatrixXf as_targets(std::span<const std::uint32_t> labels, Index classes) {
  MatrixXf targets = MatrixXf::Zero(classes, static_cast<Index>(labels.size()));
  for (std::size_t i = 0; i < labels.size(); ++i) targets(labels[i], static_cast<Index>(i)) = 1;
  return targets;
}

SoftmaxFit softmax_on_kernel(const MatrixXf& kernel, std::span<const std::uint32_t> labels,
                             const Eigen::VectorXf& offsets) {
  const RidgeFit start = fit_kernel_ridge(kernel, as_targets(labels, offsets.size()),
                                          Eigen::VectorXf::Ones(kernel.cols()), 0.2F, 1);
  return fit_kernel_softmax(kernel, labels, offsets, start, 10, to_the_end());
}

SoftmaxFit softmax_on_features(const MatrixXf& x, std::span<const std::uint32_t> labels,
                               const Eigen::VectorXf& offsets) {
  const MatrixXf gram = gram_of_rows(x, 1);
  const RidgeFit start =
      fit_ridge(x, gram, as_targets(labels, offsets.size()), Eigen::VectorXf::Ones(x.cols()), 0.2F, 1);
  return fit_softmax(x, gram, labels, offsets, start, 10, to_the_end());
}

TEST(SoftmaxRegressionTest, LeaveOneOutIsCloseToAFitWithoutTheExample) {
  const Texts texts = std::move(Texts(4, 1.1F).add_each(8));
  const MatrixXf x = texts.matrix(), kernel = plain_kernel(x, x);
  const Eigen::VectorXf offsets = Eigen::VectorXf::Zero(4);
  const SoftmaxFit all = softmax_on_kernel(kernel, texts.labels, offsets);
  const auto among = [&](std::span<const Index> chosen) -> MatrixXf {
    const std::vector<Index> some(chosen.begin(), chosen.end());
    return kernel(some, some);
  };
  const MatrixXf estimated = softmax_leave_one_out(among, all, texts.labels, offsets, to_the_end());
  double shift = 0, error = 0;
  for (Index left = 0; left < x.cols(); ++left) {
    const std::vector<Index> rest = all_but(left, x.cols());
    std::vector<std::uint32_t> labels;
    for (const Index i : rest) labels.push_back(texts.labels[static_cast<std::size_t>(i)]);
    const SoftmaxFit without = softmax_on_kernel(kernel(rest, rest), labels, offsets);
    const Eigen::VectorXf truth = without.weights * kernel(rest, left);
    shift += static_cast<double>((truth - all.logits.col(left)).squaredNorm());
    error += static_cast<double>((truth - estimated.col(left)).squaredNorm());
  }
  EXPECT_LT(error, 0.05 * shift);  // an approximation, but most of what leaving out changes is in it
}

TEST(SoftmaxRegressionTest, TheGradientVanishesAtTheSolutionOfBothWays) {
  const Texts texts = std::move(Texts(3, 1.0F).add(0, 12).add(1, 5).add(2, 7));
  const MatrixXf x = texts.matrix();
  Eigen::VectorXf offsets(3);
  offsets << 0.5F, -0.6F, 0.0F;
  for (const bool by_kernel : {false, true}) {
    const SoftmaxFit fit = by_kernel ? softmax_on_kernel(x.transpose() * x, texts.labels, offsets)
                                     : softmax_on_features(x, texts.labels, offsets);
    const MatrixXf weights = by_kernel ? MatrixXf(fit.weights * x.transpose()) : fit.weights;
    MatrixXf p = weights * x;
    EXPECT_LT((p - fit.logits).norm(), 0.01F) << by_kernel;
    p.colwise() += offsets;
    for (Index i = 0; i < p.cols(); ++i) {
      p.col(i) = p.col(i).array().exp() / p.col(i).array().exp().sum();
      p(static_cast<Index>(texts.labels[static_cast<std::size_t>(i)]), i) -= 1;
    }
    const MatrixXf gradient = p * x.transpose() + 0.03F * weights;
    EXPECT_LT(gradient.norm(), 0.02F) << by_kernel;
  }
}

}  // namespace
}  // namespace waybill::route
