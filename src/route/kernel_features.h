// The kernel of the head, and explicit features for it, so that a fit on many examples is linear algebra of a
// bounded size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <Eigen/Core>

namespace waybill::route {

// Embeddings are columns, of length 1.
using Embeddings = Eigen::Ref<const Eigen::MatrixXf>;

// k(a, b) = exp(2 (cos(a, b) - 1)): [columns of a, columns of b].
[[nodiscard]] Eigen::MatrixXf kernel_between(const Embeddings& a, const Embeddings& b, unsigned threads);

// Nystrom features (Williams & Seeger 2001, "Using the Nystrom method to speed up kernel machines"): with
// landmarks Z and K = k(Z, Z) = L L', phi(x) = L^-1 k(Z, x), so that phi(x)'phi(y) is k(x, y) projected on
// the landmarks. To these sqrt(linear) x is appended (the kernel gains linear cos): few numbers, and about
// as good as 500 more landmarks. Without any landmark it is all there is: a linear head. Landmarks are
// examples, taken from all labels in turn.
class KernelFeatures {
 public:
  static constexpr float kLinear = 0.3F, kLinearAlone = 1;

  // landmarks: at most the number of examples. The choice is a function of the arguments.
  KernelFeatures(const Embeddings& examples, std::span<const std::uint32_t> labels, std::size_t landmarks);

  [[nodiscard]] Eigen::Index size() const noexcept { return landmarks_.cols() + landmarks_.rows(); }
  [[nodiscard]] const Eigen::MatrixXf& landmarks() const noexcept { return landmarks_; }
  // Which examples are landmarks. Their features are longer than those of any new text, so that what is
  // predicted for them, even left out, is too good to be a yardstick.
  [[nodiscard]] const std::vector<bool>& favoured() const noexcept { return favoured_; }

  // [size(), columns of x].
  [[nodiscard]] Eigen::MatrixXf of(const Embeddings& x, unsigned threads) const;

  // What multiplies [k(Z, x); x] to give weights phi(x). Both [outputs, size()].
  [[nodiscard]] Eigen::MatrixXf expand(const Eigen::MatrixXf& weights) const;

 private:
  [[nodiscard]] float linear_root() const noexcept;

  Eigen::MatrixXf landmarks_;  // [dim, M]
  Eigen::MatrixXd factor_;     // L
  std::vector<bool> favoured_;
};

}  // namespace waybill::route
