#include "route/kernel_features.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>
#include <vector>

#include <Eigen/Cholesky>

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
    std::sort(order.begin(), order.end(),
              [](std::size_t a, std::size_t b) { return scrambled(a) < scrambled(b); });
    std::unordered_map<std::uint32_t, std::size_t> taken;
    std::vector<std::size_t> turn(labels.size());
    for (const std::size_t i : order) turn[i] = taken[labels[i]]++;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return turn[a] < turn[b]; });
    order.resize(count);
    std::sort(order.begin(), order.end());
  }
  return {order.begin(), order.end()};
}

}  // namespace

Eigen::MatrixXf kernel_between(const Embeddings& a, const Embeddings& b, unsigned threads) {
  Eigen::MatrixXf k(a.cols(), b.cols());
  parallel_for(static_cast<std::size_t>((b.cols() + kBlock - 1) / kBlock), threads, [&](std::size_t block) {
    const Index first = static_cast<Index>(block) * kBlock, columns = std::min(kBlock, b.cols() - first);
    auto part = k.middleCols(first, columns);
    part.noalias() = a.transpose() * b.middleCols(first, columns);
    part.array() = ((part.array() - 1.0F) * kGamma).exp();
  });
  return k;
}

KernelFeatures::KernelFeatures(const Embeddings& examples, std::span<const std::uint32_t> labels,
                               std::size_t landmarks)
    : favoured_(labels.size()) {
  const std::vector<Index> chosen = choose_landmarks(labels, landmarks);
  landmarks_ = examples(Eigen::all, chosen);
  if (chosen.empty()) return;
  for (const Index i : chosen) favoured_[static_cast<std::size_t>(i)] = true;
  factor_ = kernel_between(landmarks_, landmarks_, 1).cast<double>();
  factor_.diagonal().array() += kJitter;
  const Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>, Eigen::Lower> factored(factor_);
  WAYBILL_CHECK(factored.info() == Eigen::Success);
}

float KernelFeatures::linear_root() const noexcept {
  return std::sqrt(landmarks_.cols() > 0 ? kLinear : kLinearAlone);
}

Eigen::MatrixXf KernelFeatures::of(const Embeddings& x, unsigned threads) const {
  Eigen::MatrixXf features(size(), x.cols());
  const Index count = landmarks_.cols();
  const Eigen::MatrixXf factor = factor_.cast<float>();
  parallel_for(static_cast<std::size_t>((x.cols() + kBlock - 1) / kBlock), threads, [&](std::size_t b) {
    const Index first = static_cast<Index>(b) * kBlock, columns = std::min(kBlock, x.cols() - first);
    const auto some = x.middleCols(first, columns);
    if (count > 0) {
      Eigen::MatrixXf k = kernel_between(landmarks_, some, 1);
      factor.triangularView<Eigen::Lower>().solveInPlace(k);
      features.block(0, first, count, columns) = k;
    }
    features.block(count, first, x.rows(), columns) = linear_root() * some;
  });
  return features;
}

Eigen::MatrixXf KernelFeatures::expand(const Eigen::MatrixXf& weights) const {
  const Index count = landmarks_.cols();
  Eigen::MatrixXf expanded(weights.rows(), weights.cols());
  if (count > 0) {
    Eigen::MatrixXd first = weights.leftCols(count).transpose().cast<double>();
    factor_.triangularView<Eigen::Lower>().transpose().solveInPlace(first);
    expanded.leftCols(count) = first.cast<float>().transpose();
  }
  expanded.rightCols(landmarks_.rows()) = linear_root() * weights.rightCols(landmarks_.rows());
  return expanded;
}

}  // namespace waybill::route
