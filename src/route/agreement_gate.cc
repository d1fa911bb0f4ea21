#include "route/agreement_gate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

namespace waybill::route {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// logit P(agrees) = intercept + slope * x, with the covariance of the two.
struct LogisticFit {
  double intercept = 0, slope = 0;
  double var_intercept = 0, covariance = 0, var_slope = 0;

  [[nodiscard]] double probability(double x) const { return sigmoid(intercept + slope * x); }
  [[nodiscard]] double lower_probability(double x) const {
    const double variance = var_intercept + 2 * x * covariance + x * x * var_slope;
    return sigmoid(intercept + slope * x - std::sqrt(std::max(variance, 0.0)));
  }
};

// Newton's method on the two parameters. A touch of ridge keeps separable samples finite.
std::optional<LogisticFit> fit_logistic(std::span<const AgreementSample> samples) {
  constexpr double kRidge = 1e-3;
  constexpr int kSteps = 50;
  const auto agreeing = static_cast<double>(std::count_if(
      samples.begin(), samples.end(), [](const AgreementSample& sample) { return sample.agrees; }));
  const double differing = static_cast<double>(samples.size()) - agreeing;
  const double target_agrees = (agreeing + 1) / (agreeing + 2);
  const double target_differs = 1 / (differing + 2);

  LogisticFit fit;
  for (int step = 0; step < kSteps; ++step) {
    double g0 = kRidge * fit.intercept, g1 = kRidge * fit.slope;
    double h00 = kRidge, h01 = 0, h11 = kRidge;
    for (const AgreementSample& sample : samples) {
      const auto x = static_cast<double>(sample.margin);
      const double p = fit.probability(x);
      const double error = p - (sample.agrees ? target_agrees : target_differs);
      const double weight = p * (1 - p);
      g0 += error;
      g1 += error * x;
      h00 += weight;
      h01 += weight * x;
      h11 += weight * x * x;
    }
    const double determinant = h00 * h11 - h01 * h01;
    if (!(determinant > 0)) return std::nullopt;
    fit.var_intercept = h11 / determinant;
    fit.covariance = -h01 / determinant;
    fit.var_slope = h00 / determinant;
    const double d0 = fit.var_intercept * g0 + fit.covariance * g1;
    const double d1 = fit.covariance * g0 + fit.var_slope * g1;
    // Far steps overshoot where the curve is flat; a bounded one still gets there.
    const double scale = std::min(1.0, 10 / (std::abs(d0) + std::abs(d1) + 1e-12));
    fit.intercept -= scale * d0;
    fit.slope -= scale * d1;
    if (std::abs(d0) + std::abs(d1) < 1e-9) break;
  }
  if (!std::isfinite(fit.intercept) || !std::isfinite(fit.slope)) return std::nullopt;
  return fit;
}

}  // namespace

AgreementGate AgreementGate::fit(std::span<const AgreementSample> samples, double target) {
  if (samples.empty()) return {};
  std::vector<AgreementSample> order(samples.begin(), samples.end());
  std::sort(order.begin(), order.end(),
            [](const AgreementSample& a, const AgreementSample& b) { return a.margin > b.margin; });
  const std::optional<LogisticFit> fit = fit_logistic(order);
  if (!fit || fit->slope <= 0) return {};

  const double least = 1 - 4 * (1 - target);
  double sum = 0;
  AgreementGate gate;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto x = static_cast<double>(order[i].margin);
    sum += fit->probability(x);
    if (fit->lower_probability(x) < least) continue;
    if (sum / static_cast<double>(i + 1) < target) continue;
    gate.threshold_ = order[i].margin;
    gate.share_ = static_cast<float>(i + 1) / static_cast<float>(order.size());
  }
  return gate;
}

}  // namespace waybill::route
