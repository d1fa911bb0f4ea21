// Deciding at the speed of a fast encoder with the decisions of an exact one.
#pragma once

#include <cstddef>
#include <span>

#include "route/head.h"

namespace waybill::route {

// Low precision moves an embedding a little, and only a decision that was close to begin with can tip over.
// So a prompt is first encoded by a fast model (int8); when its decision is closer to a border than two
// standard deviations of the noise, it is encoded once more by the exact model (float32), on whose vectors
// the head was fitted. That happens to some 2 % of prompts (docs/decisions/0005).
//
// A decision has two borders: the lead of the best route over the second, and the threshold of the best
// route. The noise in both is measured at load, in log-odds, on utterances that were encoded by both models.
// Immutable.
class RecheckGuard {
 public:
  // Near a border, decisions lie at all distances alike; so of those that normal noise tips over, the share
  // phi(2) / phi(0) - 2 Q(2) / phi(0) = 2 % lie further from it than two deviations.
  static constexpr float kDeviations = 2;
  static constexpr std::size_t kMaxSamples = 200;  // utterances that it is measured on

  RecheckGuard() = default;  // nothing is close

  // exact and fast: [n, head.dim()], the embeddings of the same texts by both models.
  [[nodiscard]] static RecheckGuard fit(const Head& head, std::span<const float> exact,
                                        std::span<const float> fast);

  // Whether `said`, about a fast embedding, might be another decision about the exact one.
  [[nodiscard]] bool is_close(const HeadDecision& said, std::span<const float> thresholds) const noexcept;

  [[nodiscard]] float lead() const noexcept { return lead_; }              // log-odds (aurelio: aggregate)
  [[nodiscard]] float acceptance() const noexcept { return acceptance_; }  // the same

 private:
  config::Scoring scoring_ = config::Scoring::kKernel;
  float lead_ = 0, acceptance_ = 0;
};

}  // namespace waybill::route
