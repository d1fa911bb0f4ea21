// How long a batch takes, learnt from the batches that ran. Internal to the batcher; not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>

namespace waybill::embed {

// seconds(tokens) = a + b * tokens: reading the weights once costs the same for 16 tokens as for 32, so that
// a plain tokens-per-second figure learnt at low load would refuse half of the next burst. Least squares with
// exponential forgetting over batches (idle time has no part in it); a ridge on `a` makes it proportional as
// long as all batches have been of one size.
class BatchCost {
 public:
  BatchCost(double tokens_per_second, std::size_t typical_tokens) {
    const double n = static_cast<double>(typical_tokens);
    add(n, n / tokens_per_second, kPriorWeight);
  }

  void observe(std::size_t tokens, double seconds) {
    const double n = static_cast<double>(tokens);
    // One batch whose thread was put to sleep must not make the queue look four times as slow for long.
    const double t = std::min(seconds, kOutlier * this->seconds(n));
    weight_ *= kForget, n_ *= kForget, t_ *= kForget, nn_ *= kForget, nt_ *= kForget;
    add(n, t, 1);
  }

  [[nodiscard]] double seconds(double tokens) const noexcept { return std::max(a_ + b_ * tokens, 1e-9); }
  [[nodiscard]] double mean_tokens() const noexcept { return n_ / weight_; }
  // Of one thread, at the sizes of late.
  [[nodiscard]] double tokens_per_second() const noexcept { return n_ / std::max(t_, 1e-9); }

 private:
  static constexpr double kForget = 0.97;  // about the last 33 batches
  static constexpr double kPriorWeight = 2;
  static constexpr double kRidge = 0.02;
  static constexpr double kOutlier = 4;

  void add(double n, double t, double weight) {
    weight_ += weight, n_ += weight * n, t_ += weight * t, nn_ += weight * n * n, nt_ += weight * n * t;
    const double determinant = (1 + kRidge) * weight_ * nn_ - n_ * n_;
    a_ = (nn_ * t_ - n_ * nt_) / determinant;
    b_ = ((1 + kRidge) * weight_ * nt_ - n_ * t_) / determinant;
    if (a_ < 0) a_ = 0, b_ = nt_ / nn_;
    if (b_ < 0) a_ = t_ / weight_, b_ = 0;
  }

  double weight_ = 0, n_ = 0, t_ = 0, nn_ = 0, nt_ = 0;  // weighted sums of 1, n, t, n * n, n * t
  double a_ = 0, b_ = 0;
};

}  // namespace waybill::embed
