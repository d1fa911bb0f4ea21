#include "route/kernel_features.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "base/parallel.h"

namespace waybill::route {
namespace {

using Eigen::Index;

constexpr float kGamma = 2;
// Keeps the factor of landmarks that are near copies of each other finite; far below what the ridge adds.
constexpr double kJitter = 1e-5;
constexpr Index kBlock = 256;  // columns per piece of work

// A permutation that looks random and never changes (splitmix64's finaliser; Steele et al. 2014).
std::uint64_t scrambled(std::uint64_t i) {
  i = (i + 0x9e3779b97f4a7c15U);
  i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9U;
  i = (i ^ (i >> 27)) * 0x94d049bb133111ebU;
  return i ^ (i >> 31);
}

// The first `count` of all examples when each label gives one in turn.
std::vector<Index> choose_landmarks(std::span<const std::uint32_t> labels, std::size_t count) {
  std::vector<std::size_t> order(labels.size());
  std::iota(order.begin(), order.end(), 0U);
  if (count < order.size()) {
    std::sort(order.begin(), order.end(), [](std::size_t a, std::size_t b) { return scrambled(a) < scrambled(b); });
    std::unordered_map<std::uint32_t, std::size_t> taken;
    std::vector<std::size_t> turn(labels.size());
    for (const std::size_t i : order) turn[i] = taken[labels[i]]++;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return turn[a] < turn[b]; });
    order.resize(count);
    std::sort(order.begin(), order.end());
  }
  return {order.begin(), order.end()};
}

}  // namespace

Eigen::MatrixXf kernel_between(const Embeddings& a, const Embeddings& b) {
  Eigen::MatrixXf k = a.transpose() * b;
  k.array() = ((k.array() - 1.0F) * kGamma).exp();
  return k;
}

KernelFeatures::KernelFeatures(const Embeddings& examples, std::span<const std::uint32_t> labels)
    : linear_(labels.size() > kExact) {
  const std::vector<Index> chosen = choose_landmarks(labels, linear_ ? kLandmarks : labels.size());
  landmarks_ = examples(Eigen::all, chosen);
  if (linear_) {
    favoured_.resize(labels.size());
    for (const Index i : chosen) favoured_[static_cast<std::size_t>(i)] = true;
  }
  factor_ = cholesky_of(kernel_between(landmarks_, landmarks_).cast<double>(), kJitter);
}

Eigen::MatrixXf KernelFeatures::of(const Embeddings& x, unsigned threads) const {
  Eigen::MatrixXf features(size(), x.cols());
  const Index count = landmarks_.cols();
  const Eigen::MatrixXf factor = factor_.cast<float>();
  const Index blocks = (x.cols() + kBlock - 1) / kBlock;
  parallel_for(static_cast<std::size_t>(blocks), threads, [&](std::size_t b) {
    const Index first = static_cast<Index>(b) * kBlock, columns = std::min(kBlock, x.cols() - first);
    Eigen::MatrixXf k = kernel_between(landmarks_, x.middleCols(first, columns));
    factor.triangularView<Eigen::Lower>().solveInPlace(k);
    features.block(0, first, count, columns) = k;
    if (linear_) features.block(count, first, x.rows(), columns) = std::sqrt(kLinear) * x.middleCols(first, columns);
  });
  return features;
}

Eigen::MatrixXf KernelFeatures::expand(const Eigen::MatrixXf& weights) const {
  const Index count = landmarks_.cols();
  Eigen::MatrixXd top = weights.topRows(count).cast<double>();
  factor_.triangularView<Eigen::Lower>().transpose().solveInPlace(top);
  Eigen::MatrixXf expanded(size(), weights.cols());
  expanded.topRows(count) = top.cast<float>();
  if (linear_) expanded.bottomRows(landmarks_.rows()) = std::sqrt(kLinear) * weights.bottomRows(landmarks_.rows());
  return expanded;
}

Eigen::MatrixXd weighted_gram(const Eigen::MatrixXf& features, const Eigen::VectorXf& weights, unsigned threads) {
  const Index size = features.rows(), panel = 128;
  Eigen::MatrixXd gram = Eigen::MatrixXd::Zero(size, size);
  parallel_for(static_cast<std::size_t>((size + panel - 1) / panel), threads, [&](std::size_t p) {
    const Index first = static_cast<Index>(p) * panel, width = std::min(panel, size - first);
    const Eigen::MatrixXf right = (features.middleRows(first, width) * weights.asDiagonal()).transpose();
    const Eigen::MatrixXf product = features.bottomRows(size - first) * right;
    gram.block(first, first, size - first, width) = product.cast<double>();
  });
  return gram;
}

Eigen::MatrixXd cholesky_of(Eigen::MatrixXd matrix, double diagonal) {
  matrix.diagonal().array() += diagonal;
  const Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>, Eigen::Lower> factored(matrix);
  WAYBILL_CHECK(factored.info() == Eigen::Success);
  matrix.triangularView<Eigen::StrictlyUpper>().setZero();
  return matrix;
}

void solve_lower(const Eigen::MatrixXf& factor, Eigen::MatrixXf& x, unsigned threads) {
  parallel_for(static_cast<std::size_t>((x.cols() + kBlock - 1) / kBlock), threads, [&](std::size_t b) {
    const Index first = static_cast<Index>(b) * kBlock;
    auto block = x.middleCols(first, std::min(kBlock, x.cols() - first));
    factor.triangularView<Eigen::Lower>().solveInPlace(block);
  });
}

}  // namespace waybill::route
