// The kernel of the head as explicit features, so that fits are linear algebra of a bounded size.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace waybill::route {

// Embeddings are columns, of length 1.
using Embeddings = Eigen::Ref<const Eigen::MatrixXf>;

// k(a, b) = exp(2 (cos(a, b) - 1)).
[[nodiscard]] Eigen::MatrixXf kernel_between(const Embeddings& a, const Embeddings& b);

// Nystrom features (Williams & Seeger 2001, "Using the Nystrom method to speed up kernel machines"): with landmarks Z
// and K = k(Z, Z) = L L', phi(x) = L^-1 k(Z, x), so that phi(x)'phi(y) is k(x, y) projected on the landmarks. Up to
// kExact examples all are landmarks and nothing is lost. Beyond, kLandmarks are taken from all labels in turn, and
// sqrt(kLinear) x is appended (the kernel gains kLinear cos): few numbers, and about as good as 500 more landmarks.
class KernelFeatures {
 public:
  static constexpr std::size_t kExact = 3000;
  static constexpr std::size_t kLandmarks = 1500;
  static constexpr float kLinear = 0.3F;

  // The choice is a function of the arguments.
  KernelFeatures(const Embeddings& examples, std::span<const std::uint32_t> labels);

  [[nodiscard]] Eigen::Index size() const noexcept { return landmarks_.cols() + (linear_ ? landmarks_.rows() : 0); }
  [[nodiscard]] const Eigen::MatrixXf& landmarks() const noexcept { return landmarks_; }
  [[nodiscard]] bool linear() const noexcept { return linear_; }
  // Which examples are landmarks although not all are. Their features are longer than those of any new text, so that
  // what is predicted for them, even left out, is too good to be a yardstick. Empty when nothing is lost.
  [[nodiscard]] const std::vector<bool>& favoured() const noexcept { return favoured_; }

  // [size(), columns of x].
  [[nodiscard]] Eigen::MatrixXf of(const Embeddings& x, unsigned threads) const;

  // What multiplies [k(Z, x); x] (without the second part unless linear()) to give weights' phi(x).
  [[nodiscard]] Eigen::MatrixXf expand(const Eigen::MatrixXf& weights) const;

 private:
  Eigen::MatrixXf landmarks_;  // [dim, M]
  Eigen::MatrixXd factor_;     // L
  bool linear_ = false;
  std::vector<bool> favoured_;
};

// Lower triangle of features diag(weights) features', [size, size]; the same for any number of threads.
[[nodiscard]] Eigen::MatrixXd weighted_gram(const Eigen::MatrixXf& features, const Eigen::VectorXf& weights, unsigned threads);

// L with L L' = matrix + diagonal I, of the lower triangle of a positive semidefinite matrix.
[[nodiscard]] Eigen::MatrixXd cholesky_of(Eigen::MatrixXd matrix, double diagonal);

// x = L^-1 x, in blocks of columns.
void solve_lower(const Eigen::MatrixXf& factor, Eigen::MatrixXf& x, unsigned threads);

}  // namespace waybill::route
