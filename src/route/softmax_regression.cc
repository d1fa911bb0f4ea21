#include "route/softmax_regression.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <tuple>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "route/linear_algebra.h"

namespace waybill::route {
namespace {

using Eigen::Index;
using Eigen::MatrixXf;

// Sums are taken per chunk and then in order, so that the number of threads does not change them.
constexpr Index kChunk = 256;
constexpr std::size_t kHistory = 6;

void softmax_in_place(Eigen::Ref<Eigen::VectorXf> logits, double& log_sum) {
  const float top = logits.maxCoeff();
  logits.array() = (logits.array() - top).exp();
  const float sum = logits.sum();
  logits /= sum;
  log_sum = std::log(static_cast<double>(sum)) + top;
}

// Coordinates, and the metric applied to them: <a, b> = sum(a.image b). Without an image the metric is the
// identity.
struct Coordinates {
  MatrixXf at, image;

  [[nodiscard]] float dot(const MatrixXf& other) const {
    return (image.size() > 0 ? image : at).cwiseProduct(other).sum();
  }
  [[nodiscard]] float squared_norm() const { return std::max(dot(at), 0.0F); }
  [[nodiscard]] Coordinates less(const Coordinates& other) const {
    return {.at = at - other.at, .image = image - other.image};
  }
};

struct Point {
  Coordinates v, gradient;
  MatrixXf logits;
  double loss = 0;
};

// The loss in coordinates V = L'W with L L' = features features' / 2 + lambda I. One half bounds the
// curvature of the softmax (Boehning 1992, "Multinomial logistic regression algorithm"), so here no direction
// curves more than 1 and a step along the gradient never overshoots. lambda |W|^2 = |V|^2 - |Z|^2 / 2 for
// logits Z = V' L^-1 features, so that neither loss nor gradient needs a triangular solve. With P the
// probabilities and Y the labels as ones, the gradient is V + L^-1 features (P - Y - Z / 2)'.
class Objective {
 public:
  Objective(std::span<const std::uint32_t> labels, const Eigen::VectorXf& offsets, unsigned threads)
      : threads_(threads), labels_(labels), offsets_(offsets) {}
  virtual ~Objective() = default;
  Objective(const Objective&) = delete;
  Objective& operator=(const Objective&) = delete;

  // Everything else at point.v.at.
  virtual void evaluate(Point& point) const = 0;

 protected:
  // P - Y - Z / 2 at the point's logits, and the sum of its cross-entropies less |Z|^2 / 4.
  MatrixXf residuals(const MatrixXf& logits, double& loss) const {
    MatrixXf out = logits;
    const auto chunks = static_cast<std::size_t>((out.cols() + kChunk - 1) / kChunk);
    std::vector<double> losses(chunks);
    parallel_for(chunks, threads_, [&](std::size_t c) {
      const Index first = static_cast<Index>(c) * kChunk, end = std::min(first + kChunk, out.cols());
      for (Index i = first; i < end; ++i) {
        const auto label = static_cast<Index>(labels_[static_cast<std::size_t>(i)]);
        auto p = out.col(i);
        p += offsets_;
        const float at_label = p[label];
        double log_sum = 0;
        softmax_in_place(p, log_sum);
        losses[c] +=
            log_sum - static_cast<double>(at_label) - 0.25 * static_cast<double>(logits.col(i).squaredNorm());
        p[label] -= 1.0F;
        p -= 0.5F * logits.col(i);
      }
    });
    for (const double part : losses) loss += part;
    return out;
  }

  unsigned threads_;

 private:
  std::span<const std::uint32_t> labels_;
  const Eigen::VectorXf& offsets_;
};

class FeatureObjective final : public Objective {
 public:
  FeatureObjective(const MatrixXf& whitened, std::span<const std::uint32_t> labels,
                   const Eigen::VectorXf& offsets, unsigned threads)
      : Objective(labels, offsets, threads), x_(whitened) {}

  void evaluate(Point& point) const override {
    point.logits = transposed_product(point.v.at, x_, threads_);
    point.loss = point.v.at.squaredNorm() / 2.0;
    const MatrixXf r = residuals(point.logits, point.loss);
    point.gradient.at = point.v.at + product(x_, r.transpose(), threads_);
  }

 private:
  const MatrixXf& x_;
};

// In the dual: V = L^-1 features B, so that Z = B H with H = features' (L L')^-1 features, and |V|^2 = <B,
// Z>. The gradient is B + (P - Y - Z / 2), its image Z + (P - Y - Z / 2) H. (B H could be carried along with
// B; but what rounding does to the one and not to the other grows tenfold with each step.)
class KernelObjective final : public Objective {
 public:
  KernelObjective(const MatrixXf& smoother, std::span<const std::uint32_t> labels,
                  const Eigen::VectorXf& offsets, unsigned threads)
      : Objective(labels, offsets, threads), h_(smoother) {}

  void evaluate(Point& point) const override {
    point.v.image = product(point.v.at, h_, threads_);
    point.logits = point.v.image;
    point.loss = static_cast<double>(point.v.squared_norm()) / 2.0;
    const MatrixXf r = residuals(point.logits, point.loss);
    point.gradient.at = point.v.at + r;
    point.gradient.image = point.v.image + product(r, h_, threads_);
  }

 private:
  const MatrixXf& h_;
};

// The two-loop recursion of L-BFGS (Nocedal & Wright, "Numerical Optimization", algorithm 7.4).
class History {
 public:
  void push(Coordinates step, Coordinates change) {
    const float curvature = step.dot(change.at);
    if (curvature <= 0) return;
    pairs_.push_back({std::move(step), std::move(change), curvature});
    if (pairs_.size() > kHistory) pairs_.pop_front();
  }

  [[nodiscard]] MatrixXf direction(MatrixXf q) const {
    std::vector<float> alphas(pairs_.size());
    for (std::size_t k = pairs_.size(); k-- > 0;) {
      alphas[k] = pairs_[k].step.dot(q) / pairs_[k].curvature;
      q -= alphas[k] * pairs_[k].change.at;
    }
    if (!pairs_.empty()) q *= pairs_.back().curvature / pairs_.back().change.squared_norm();
    for (std::size_t k = 0; k < pairs_.size(); ++k) {
      q += (alphas[k] - pairs_[k].change.dot(q) / pairs_[k].curvature) * pairs_[k].step.at;
    }
    return q;
  }

 private:
  struct Pair {
    Coordinates step, change;
    float curvature;
  };
  std::deque<Pair> pairs_;
};

// Halves the step until the loss has fallen as it should (Armijo); false when no step helps any more.
bool line_search(const Objective& objective, const Point& from, const MatrixXf& direction, Point& to) {
  const double slope = static_cast<double>(from.gradient.dot(direction));
  for (float step = 1; step > 1e-3F; step /= 2) {
    to.v.at = from.v.at - step * direction;
    objective.evaluate(to);
    if (to.loss <= from.loss - 1e-4 * static_cast<double>(step) * slope) return true;
  }
  return false;
}

Point minimise(const Objective& objective, MatrixXf start, const SoftmaxOptions& options) {
  Point at, next;
  at.v.at = std::move(start);
  objective.evaluate(at);
  const float least = 1e-8F * std::max(at.gradient.squared_norm(), 1.0F);
  History history;
  for (int i = 0; i < options.iterations && at.gradient.squared_norm() > least; ++i) {
    if (!line_search(objective, at, history.direction(at.gradient.at), next)) break;
    history.push(next.v.less(at.v), next.gradient.less(at.gradient));
    std::swap(at, next);
    if (options.keep_going && !options.keep_going(i + 1)) break;
  }
  return at;
}

}  // namespace

SoftmaxFit fit_softmax(const MatrixXf& features, const MatrixXf& gram, std::span<const std::uint32_t> labels,
                       const Eigen::VectorXf& offsets, const RidgeFit& start, float scale,
                       const SoftmaxOptions& options) {
  MatrixXf factor = 0.5F * gram;
  factor.diagonal().array() += options.lambda;
  cholesky_in_place(factor, options.threads);
  MatrixXf whitened = features;
  solve_lower(factor, whitened, options.threads);

  const MatrixXf first = scale * (factor.transpose() * start.weights.transpose());
  Point at = minimise(FeatureObjective(whitened, labels, offsets, options.threads), first, options);
  factor.triangularView<Eigen::Lower>().transpose().solveInPlace(at.v.at);
  return {.weights = at.v.at.transpose(), .logits = std::move(at.logits)};
}

// W = features A with A = (K / 2 + lambda I)^-1 B. The smoother is H = K (K / 2 + lambda I)^-1 = 2 I - 4
// lambda (K + 2 lambda I)^-1, and therefore A = (B - B H / 2) / lambda.
SoftmaxFit fit_kernel_softmax(const MatrixXf& kernel, std::span<const std::uint32_t> labels,
                              const Eigen::VectorXf& offsets, const RidgeFit& start, float scale,
                              const SoftmaxOptions& options) {
  MatrixXf smoother = kernel;
  smoother.diagonal().array() += 2 * options.lambda;
  cholesky_in_place(smoother, options.threads);
  smoother = gram_of_lower(inverse_of_lower(smoother, options.threads), options.threads);
  smoother *= -4 * options.lambda;
  smoother.diagonal().array() += 2;

  const MatrixXf first = scale * (0.5F * start.fitted + options.lambda * start.weights);
  const Point at = minimise(KernelObjective(smoother, labels, offsets, options.threads), first, options);
  SoftmaxFit fit = {.weights = (at.v.at - 0.5F * at.v.image) / options.lambda, .logits = at.logits};
  // Dividing by lambda makes much of the rounding in H; a step of iterative refinement takes it back.
  const MatrixXf rest =
      at.v.at - 0.5F * product(fit.weights, kernel, options.threads) - options.lambda * fit.weights;
  fit.weights += (rest - 0.5F * product(rest, smoother, options.threads)) / options.lambda;
  return fit;
}

MatrixXf softmax_leave_one_out(const KernelAmong& kernel, const SoftmaxFit& fit,
                               std::span<const std::uint32_t> labels, const Eigen::VectorXf& offsets,
                               const SoftmaxOptions& options) {
  constexpr float kCertain = 1e-3F;   // curvature below which an example says nothing about a class
  constexpr std::size_t kMost = 256;  // examples per class, the most uncertain first
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
      const auto rank = [&](Index i) { return std::tuple(!own(i), -weight(i), i); };
      std::ranges::sort(chosen, {}, rank);
      chosen.resize(kMost);
    }
    const auto count = static_cast<Index>(chosen.size());
    Eigen::VectorXf root(count);
    for (Index k = 0; k < count; ++k) root[k] = std::sqrt(weight(chosen[static_cast<std::size_t>(k)]));
    MatrixXf b = root.asDiagonal() * kernel(chosen) * root.asDiagonal();
    b /= options.lambda;
    b.diagonal().array() += 1.0F;
    cholesky_in_place(b, 1);
    const Eigen::RowVectorXf diagonal = inverse_of_lower(b, 1).colwise().squaredNorm();
    for (Index k = 0; k < count; ++k) {
      const Index i = chosen[static_cast<std::size_t>(k)];
      const float variance = (1 - diagonal[k]) / (root[k] * root[k] * diagonal[k]);
      result(row, i) -= variance * ((own(i) ? 1.0F : 0.0F) - p(row, i));
    }
  });
  return result;
}

}  // namespace waybill::route
