#include "route/calibration.h"

#include <algorithm>
#include <cmath>

#include "route/calibrate.h"

namespace waybill::route {
namespace {

using Eigen::Index;

double log_sum_exp(const Eigen::VectorXd& x) {
  const double top = x.maxCoeff();
  return top + std::log((x.array() - top).exp().sum());
}

// Least weighted cross-entropy plus a prior that holds when there is little or nothing to learn from: two
// routes that are told apart without an error would otherwise ask for an infinite certainty.
float fit_temperature(const Eigen::MatrixXf& logits, std::span<const std::uint32_t> labels,
                      const std::vector<bool>& usable, const Eigen::VectorXf& weights) {
  const auto cost = [&](double log_t) {
    const double scale = std::exp(-log_t), off = (log_t - std::log(0.5)) / 0.5;
    double sum = off * off / 2;
    for (Index i = 0; i < logits.cols(); ++i) {
      if (!usable[static_cast<std::size_t>(i)]) continue;
      const Eigen::VectorXd scaled = logits.col(i).cast<double>() * scale;
      sum += static_cast<double>(weights[i]) *
             (log_sum_exp(scaled) - scaled[labels[static_cast<std::size_t>(i)]]);
    }
    return sum;
  };
  double low = std::log(0.02),
         high = std::log(20.0);  // golden section: the cost is unimodal in log t in practice
  const double ratio = (std::sqrt(5.0) - 1) / 2;
  double a = high - ratio * (high - low), b = low + ratio * (high - low), cost_a = cost(a), cost_b = cost(b);
  for (int k = 0; k < 16; ++k) {
    if (cost_a < cost_b) {
      high = b, b = a, cost_b = cost_a, a = high - ratio * (high - low), cost_a = cost(a);
    } else {
      low = a, a = b, cost_a = cost_b, b = low + ratio * (high - low), cost_b = cost(b);
    }
  }
  return static_cast<float>(std::exp((low + high) / 2));
}

// Logistic regression right/wrong on log-odds by Newton's method, with a Gaussian prior about (0.5, 1).
void fit_platt(std::span<const double> x, const std::vector<bool>& right, std::span<const double> weights,
               Calibration& c) {
  constexpr double kSlope = 0.5, kIntercept = 1, kPrior = 4;
  double slope = kSlope, intercept = kIntercept;
  for (int step = 0; step < 25; ++step) {
    double g0 = kPrior * (slope - kSlope), g1 = kPrior * (intercept - kIntercept), h00 = kPrior, h01 = 0,
           h11 = kPrior;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double p = 1 / (1 + std::exp(-(slope * x[i] + intercept)));
      const double residual = weights[i] * (p - (right[i] ? 1 : 0)), curvature = weights[i] * p * (1 - p);
      g0 += residual * x[i], g1 += residual;
      h00 += curvature * x[i] * x[i], h01 += curvature * x[i], h11 += curvature;
    }
    const double determinant = h00 * h11 - h01 * h01;
    const double d0 = (h11 * g0 - h01 * g1) / determinant, d1 = (h00 * g1 - h01 * g0) / determinant;
    const double shrink = std::min(1.0, 2.0 / std::max(std::abs(d0), std::abs(d1)));
    slope -= shrink * d0, intercept -= shrink * d1;
    if (std::abs(d0) + std::abs(d1) < 1e-9) break;
  }
  c.slope = static_cast<float>(std::max(slope, 0.05));  // a higher log-odds never means less
  c.intercept = static_cast<float>(intercept);
}

}  // namespace

float Calibration::log_odds(std::span<const float> logits, std::size_t route) const noexcept {
  float top = none_logit;
  for (std::size_t r = 0; r < logits.size(); ++r) {
    if (r != route) top = std::max(top, logits[r] / temperature);
  }
  if (!std::isfinite(top)) return kNoRival;
  float rivals = std::exp(none_logit - top);
  for (std::size_t r = 0; r < logits.size(); ++r) {
    if (r != route) rivals += std::exp(logits[r] / temperature - top);
  }
  return std::clamp(logits[route] / temperature - top - std::log(rivals), -50.0F, 50.0F);
}

float Calibration::probability(float log_odds) const noexcept {
  return 1 / (1 + std::exp(-(slope * log_odds + intercept)));
}

Calibration calibrate(const Eigen::MatrixXf& leave_one_out, std::size_t routes,
                      std::span<const std::uint32_t> labels, const std::vector<bool>& usable,
                      const std::vector<bool>& favoured, const Eigen::VectorXf& weights) {
  Calibration c;
  if (leave_one_out.rows() > 1) c.temperature = fit_temperature(leave_one_out, labels, usable, weights);
  // A quarter of the utterances have a lower sum: low enough to leave the certain alone, high enough to be
  // felt where rejection is decided.
  std::vector<float> sums;
  for (Index i = 0; i < leave_one_out.cols(); ++i) {
    if (labels[static_cast<std::size_t>(i)] >= routes || favoured[static_cast<std::size_t>(i)]) continue;
    const Eigen::VectorXd scaled = leave_one_out.col(i).head(static_cast<Index>(routes)).cast<double>() /
                                   static_cast<double>(c.temperature);
    sums.push_back(static_cast<float>(log_sum_exp(scaled)));
  }
  c.none_logit = quantile(std::move(sums), 0.25);

  std::vector<double> odds, odds_weights;
  std::vector<bool> right;
  for (Index i = 0; i < leave_one_out.cols(); ++i) {
    if (!usable[static_cast<std::size_t>(i)]) continue;
    const std::span<const float> logits(leave_one_out.col(i).data(),
                                        static_cast<std::size_t>(leave_one_out.rows()));
    const auto best = static_cast<std::size_t>(
        std::max_element(logits.begin(), logits.begin() + static_cast<std::ptrdiff_t>(routes)) -
        logits.begin());
    odds.push_back(static_cast<double>(c.log_odds(logits, best)));
    right.push_back(best == labels[static_cast<std::size_t>(i)]);
    odds_weights.push_back(static_cast<double>(weights[i]));
  }
  fit_platt(odds, right, odds_weights, c);
  return c;
}

float quantile(std::vector<float> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] +
         static_cast<float>(at - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace waybill::route
