#include "route/softmax_regression.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include "base/parallel.h"
#include "route/kernel_features.h"

namespace waybill::route {
namespace {

using Eigen::Index;
using Eigen::MatrixXf;

// Sums are taken per chunk and then in order, so that the number of threads does not change them.
constexpr Index kChunk = 512;

void softmax_in_place(Eigen::Ref<Eigen::VectorXf> logits, double& log_sum) {
  const float top = logits.maxCoeff();
  logits.array() = (logits.array() - top).exp();
  const float sum = logits.sum();
  logits /= sum;
  log_sum = std::log(static_cast<double>(sum)) + top;
}

struct Point {
  MatrixXf v, gradient, logits;
  double loss = 0;
};

// The loss in coordinates V = L'W with L L' = features features' / 2 + lambda I. One half bounds the curvature of the
// softmax (Boehning 1992, "Multinomial logistic regression algorithm"), so here no direction curves more than 1 and
// a step along the gradient never overshoots. lambda |W|^2 = |V|^2 - |Z|^2 / 2 for logits Z = V' L^-1 features, so that
// neither loss nor gradient needs a triangular solve.
class Objective {
 public:
  Objective(const MatrixXf& whitened, std::span<const std::uint32_t> labels, const Eigen::VectorXf& offsets, unsigned threads)
      : x_(whitened), labels_(labels), offsets_(offsets), threads_(threads) {}

  void evaluate(Point& point) const {
    const auto chunks = static_cast<std::size_t>((x_.cols() + kChunk - 1) / kChunk);
    std::vector<MatrixXf> gradients(chunks);
    std::vector<double> losses(chunks);
    point.logits.resize(offsets_.size(), x_.cols());
    parallel_for(chunks, threads_, [&](std::size_t c) {
      losses[c] = evaluate_chunk(static_cast<Index>(c) * kChunk, point, gradients[c]);
    });
    point.gradient = point.v;
    point.loss = point.v.squaredNorm() / 2.0;
    for (std::size_t c = 0; c < chunks; ++c) {
      point.gradient += gradients[c];
      point.loss += losses[c];
    }
  }

 private:
  double evaluate_chunk(Index first, Point& point, MatrixXf& gradient) const {
    const Index columns = std::min(kChunk, x_.cols() - first);
    const auto block = x_.middleCols(first, columns);
    MatrixXf z = point.v.transpose() * block;
    point.logits.middleCols(first, columns) = z;
    double loss = 0;
    Eigen::VectorXf p(z.rows());
    for (Index i = 0; i < columns; ++i) {
      const auto label = static_cast<Index>(labels_[static_cast<std::size_t>(first + i)]);
      p = z.col(i) + offsets_;
      const float at_label = p[label];
      double log_sum = 0;
      softmax_in_place(p, log_sum);
      loss += log_sum - static_cast<double>(at_label) - 0.25 * static_cast<double>(z.col(i).squaredNorm());
      p[label] -= 1.0F;
      z.col(i) = p - 0.5F * z.col(i);
    }
    gradient.noalias() = block * z.transpose();
    return loss;
  }

  const MatrixXf& x_;
  std::span<const std::uint32_t> labels_;
  const Eigen::VectorXf& offsets_;
  unsigned threads_;
};

float dot(const MatrixXf& a, const MatrixXf& b) { return a.cwiseProduct(b).sum(); }

// The two-loop recursion of L-BFGS (Nocedal & Wright, "Numerical Optimization", algorithm 7.4).
class History {
 public:
  void push(MatrixXf step, MatrixXf change) {
    const float curvature = dot(step, change);
    if (curvature <= 0) return;
    pairs_.push_back({std::move(step), std::move(change), curvature});
    if (pairs_.size() > 10) pairs_.pop_front();
  }

  [[nodiscard]] MatrixXf direction(MatrixXf q) const {
    std::vector<float> alphas(pairs_.size());
    for (std::size_t k = pairs_.size(); k-- > 0;) {
      alphas[k] = dot(pairs_[k].step, q) / pairs_[k].curvature;
      q -= alphas[k] * pairs_[k].change;
    }
    if (!pairs_.empty()) q *= pairs_.back().curvature / pairs_.back().change.squaredNorm();
    for (std::size_t k = 0; k < pairs_.size(); ++k) {
      q += (alphas[k] - dot(pairs_[k].change, q) / pairs_[k].curvature) * pairs_[k].step;
    }
    return q;
  }

 private:
  struct Pair {
    MatrixXf step, change;
    float curvature;
  };
  std::deque<Pair> pairs_;
};

// Halves the step until the loss has fallen as it should (Armijo); false when no step helps any more.
bool line_search(const Objective& objective, const Point& from, const MatrixXf& direction, Point& to) {
  const double slope = static_cast<double>(dot(from.gradient, direction));
  for (float step = 1; step > 1e-3F; step /= 2) {
    to.v = from.v - step * direction;
    objective.evaluate(to);
    if (to.loss <= from.loss - 1e-4 * static_cast<double>(step) * slope) return true;
  }
  return false;
}

}  // namespace

SoftmaxFit fit_softmax(const MatrixXf& features, std::span<const std::uint32_t> labels, const Eigen::VectorXf& offsets,
                       const MatrixXf& start, const SoftmaxOptions& options) {
  const Eigen::VectorXf half = Eigen::VectorXf::Constant(features.cols(), 0.5F);
  const Eigen::MatrixXd factor = cholesky_of(weighted_gram(features, half, options.threads), options.lambda);
  MatrixXf whitened = features;
  solve_lower(factor.cast<float>(), whitened, options.threads);

  const Objective objective(whitened, labels, offsets, options.threads);
  Point at, next;
  at.v = (factor.transpose() * start.cast<double>()).cast<float>();
  objective.evaluate(at);
  const float first_norm = at.gradient.norm();
  History history;
  for (int i = 0; i < options.iterations && at.gradient.norm() > 1e-4F * std::max(first_norm, 1.0F); ++i) {
    if (!line_search(objective, at, history.direction(at.gradient), next)) break;
    history.push(next.v - at.v, next.gradient - at.gradient);
    std::swap(at, next);
    if (options.keep_going && !options.keep_going(i + 1)) break;
  }
  Eigen::MatrixXd weights = at.v.cast<double>();
  factor.triangularView<Eigen::Lower>().transpose().solveInPlace(weights);
  return {.weights = weights.cast<float>(), .logits = std::move(at.logits)};
}

MatrixXf softmax_leave_one_out(const MatrixXf& features, const SoftmaxFit& fit, std::span<const std::uint32_t> labels,
                               const Eigen::VectorXf& offsets, const SoftmaxOptions& options) {
  constexpr float kCertain = 1e-3F;      // curvature below which an example says nothing about a class
  constexpr std::size_t kMost = 256;     // examples per class, the most uncertain first
  MatrixXf p = fit.logits.colwise() + offsets;
  double log_sum = 0;
  for (Index i = 0; i < p.cols(); ++i) softmax_in_place(p.col(i), log_sum);

  MatrixXf result = fit.logits;
  parallel_for(static_cast<std::size_t>(p.rows()), options.threads, [&](std::size_t c) {
    const auto row = static_cast<Index>(c);
    const auto weight = [&](Index i) { return std::max(p(row, i) * (1 - p(row, i)), 1e-6F); };
    const auto own = [&](Index i) { return labels[static_cast<std::size_t>(i)] == c; };
    std::vector<Index> chosen;
    for (Index i = 0; i < p.cols(); ++i) {
      if (own(i) || weight(i) > kCertain) chosen.push_back(i);
    }
    if (chosen.size() > kMost) {
      const auto order = [&](Index a, Index b) { return std::pair(!own(a), -weight(a)) < std::pair(!own(b), -weight(b)); };
      std::stable_sort(chosen.begin(), chosen.end(), order);
      chosen.resize(kMost);
    }
    const auto count = static_cast<Index>(chosen.size());
    const MatrixXf some = features(Eigen::all, chosen);
    Eigen::MatrixXd b = (some.transpose() * some).cast<double>() / options.lambda;
    Eigen::VectorXd root(count);
    for (Index k = 0; k < count; ++k) root[k] = std::sqrt(static_cast<double>(weight(chosen[static_cast<std::size_t>(k)])));
    b = root.asDiagonal() * b * root.asDiagonal();
    b.diagonal().array() += 1.0;
    const Eigen::MatrixXd inverse = b.llt().solve(Eigen::MatrixXd::Identity(count, count));
    for (Index k = 0; k < count; ++k) {
      const Index i = chosen[static_cast<std::size_t>(k)];
      const double variance = (1 - inverse(k, k)) / (root[k] * root[k] * inverse(k, k));
      result(row, i) -= static_cast<float>(variance) * ((own(i) ? 1.0F : 0.0F) - p(row, i));
    }
  });
  return result;
}

}  // namespace waybill::route
