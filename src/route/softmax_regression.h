// Multinomial logistic regression on features or on a kernel, with approximate leave-one-out logits.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include <Eigen/Core>

#include "route/ridge.h"

namespace waybill::route {

struct SoftmaxOptions {
  float lambda = 0.03F;  // loss: sum of cross-entropies + lambda / 2 |f|^2
  int iterations = 15;
  unsigned threads = 0;
  // Called after each iteration with its number; false stops early.
  std::function<bool(int)> keep_going;
};

struct SoftmaxFit {
  Eigen::MatrixXf weights;  // as RidgeFit's: [classes, D] or [classes, n]
  Eigen::MatrixXf logits;   // [classes, n], without the offsets
};

// Cross-entropy of softmax(f(x) + offsets) with the offsets fixed: with offsets log(class size) the logits
// themselves are free of how many examples each class has ("logit adjustment", Menon et al. 2020,
// arXiv:2007.07314). It sets out from `scale` times what the ridge regression on the same features or kernel
// has found. features [D, n]; gram: features features'; labels [n] < classes; offsets [classes].
[[nodiscard]] SoftmaxFit fit_softmax(const Eigen::MatrixXf& features, const Eigen::MatrixXf& gram,
                                     std::span<const std::uint32_t> labels, const Eigen::VectorXf& offsets,
                                     const RidgeFit& start, float scale, const SoftmaxOptions& options);
[[nodiscard]] SoftmaxFit fit_kernel_softmax(const Eigen::MatrixXf& kernel,
                                            std::span<const std::uint32_t> labels,
                                            const Eigen::VectorXf& offsets, const RidgeFit& start,
                                            float scale, const SoftmaxOptions& options);

// The kernel among some of the examples: chosen.size() squared.
using KernelAmong = std::function<Eigen::MatrixXf(std::span<const Eigen::Index> chosen)>;

// The logits of each example if it had not been fitted on, [classes, n]; of a converged fit. Per class, the
// cavity mean of the Laplace approximation (Opper & Winther 2000, "Gaussian processes for classification",
// mean-field; Vehtari et al. 2016, JMLR 17(103), section 3.2), with the curvature of other classes and of
// examples the class is certain of left out: z_i - (1 - b_i) / (w_i b_i) (y_i - p_i), b the diagonal of (I +
// w^1/2 (K / lambda) w^1/2)^-1, w = p (1 - p).
[[nodiscard]] Eigen::MatrixXf softmax_leave_one_out(const KernelAmong& kernel, const SoftmaxFit& fit,
                                                    std::span<const std::uint32_t> labels,
                                                    const Eigen::VectorXf& offsets,
                                                    const SoftmaxOptions& options);

}  // namespace waybill::route
