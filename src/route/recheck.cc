#include "route/recheck.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"

namespace waybill::route {
namespace {

// Where probabilities become log-odds; scoring: aurelio gives aggregates of cosines, which stay as they are.
float position(config::Scoring scoring, float probability) noexcept {
  if (scoring != config::Scoring::kKernel) return probability;
  const float p = std::clamp(probability, 1e-6F, 1 - 1e-6F);
  return std::log(p / (1 - p));
}

// How far the lead of the best route moved; a route that took the lead moved by both leads.
float lead_change(const HeadDecision& exact, const HeadDecision& fast) noexcept {
  return fast.best == exact.best ? fast.margin - exact.margin : fast.margin + exact.margin;
}

}  // namespace

RecheckGuard RecheckGuard::fit(const Head& head, std::span<const float> exact, std::span<const float> fast) {
  WAYBILL_CHECK(exact.size() == fast.size());
  const std::size_t dim = head.dim();
  const std::size_t samples = exact.size() / dim;
  RecheckGuard guard;
  guard.scoring_ = head.scoring();
  std::vector<float> probabilities(head.routes());
  Head::Scratch scratch;
  double lead = 0;
  double acceptance = 0;
  for (std::size_t i = 0; i < samples; ++i) {
    const HeadDecision a = head.score(exact.subspan(i * dim, dim), probabilities, scratch);
    const HeadDecision b = head.score(fast.subspan(i * dim, dim), probabilities, scratch);
    const double moved = lead_change(a, b);
    const double shifted = position(guard.scoring_, b.probability) - position(guard.scoring_, a.probability);
    lead += moved * moved;
    acceptance += shifted * shifted;
  }
  if (samples == 0) return guard;
  guard.lead_ = kDeviations * static_cast<float>(std::sqrt(lead / static_cast<double>(samples)));
  guard.acceptance_ = kDeviations * static_cast<float>(std::sqrt(acceptance / static_cast<double>(samples)));
  return guard;
}

bool RecheckGuard::is_close(const HeadDecision& said, std::span<const float> thresholds) const noexcept {
  const float score = position(scoring_, said.probability);
  const float threshold = position(scoring_, thresholds[said.best]);
  if (std::abs(score - threshold) < acceptance_) return true;
  if (said.best == said.second || said.margin >= lead_) return false;
  // Two routes are level. It matters which of them leads unless both would be rejected either way.
  return said.accepted || score + acceptance_ >= position(scoring_, thresholds[said.second]);
}

}  // namespace waybill::route
