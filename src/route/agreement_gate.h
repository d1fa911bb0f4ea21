// When the static tier may speak for the encoder.
#pragma once

#include <limits>
#include <span>

namespace waybill::route {

// One text of which both decisions are known.
struct AgreementSample {
  float margin = 0;     // of the static decision: how far its best route is ahead of the second
  bool agrees = false;  // the encoder takes the same route (and does not reject it)
};

// The margin from which the static tier's decisions are the encoder's.
//
// A share of agreement counted among the few texts with the largest margins would be a coin toss (of 1,000
// utterances, a target of 99.5 % leaves two or three disagreements to count), so the probability of agreement
// is modelled as a function of the margin, logit P = a + b margin (the margin of a head is in log-odds
// already), fitted to all samples by maximum likelihood with Platt's targets (Platt 1999, "Probabilistic
// outputs for support vector machines", section 2.2). The gate opens at the smallest margin where
//   - the mean probability of all samples above it is at least the target, and
//   - the probability right there, less one standard error, is still at least 1 - 4 (1 - target).
// The second is what keeps it shut when there are too few samples to know.
class AgreementGate {
 public:
  AgreementGate() = default;  // shut
  explicit AgreementGate(float threshold, float share = 0) : threshold_(threshold), share_(share) {}

  [[nodiscard]] static AgreementGate fit(std::span<const AgreementSample> samples, double target);

  [[nodiscard]] bool opens(float margin) const noexcept { return margin >= threshold_; }
  [[nodiscard]] float threshold() const noexcept { return threshold_; }
  // Of the samples it was fitted on, those that it lets through.
  [[nodiscard]] float share() const noexcept { return share_; }

 private:
  float threshold_ = std::numeric_limits<float>::infinity();
  float share_ = 0;
};

}  // namespace waybill::route
