#include "route/head.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include <Eigen/Core>

#include "base/check.h"

namespace waybill::route {
namespace {

// Room for values of several types, one after the other, each at a multiple of 64 bytes.
class Room {
 public:
  Room(Head::Scratch& scratch, std::size_t bytes) : scratch_(scratch) {
    if (scratch.size() < bytes) scratch.resize(bytes);
  }
  template <class T>
  [[nodiscard]] static constexpr std::size_t bytes(std::size_t count) {
    return (count * sizeof(T) + 63) / 64 * 64;
  }
  template <class T>
  std::span<T> take(std::size_t count) {
    T* const first = reinterpret_cast<T*>(scratch_.data() + used_);
    used_ += bytes<T>(count);
    return {first, count};
  }

 private:
  Head::Scratch& scratch_;
  std::size_t used_ = 0;
};

}  // namespace

std::size_t Head::cost() const noexcept {
  return points_.size() + landmarks_.values.size() + weights_.size();
}

HeadDecision Head::score(std::span<const float> embedding, std::span<float> probabilities,
                         Scratch& scratch) const noexcept {
  WAYBILL_CHECK(embedding.size() == dim_ && probabilities.size() == routes());
  if (scoring_ == config::Scoring::kAurelio) {
    return score_neighbours(embedding, probabilities, scratch, std::numeric_limits<std::size_t>::max());
  }
  const std::size_t count = landmarks_.rows(), features = count + (linear_ ? dim_ : 0);
  const std::size_t width = weights_.size() / features;
  Room room(scratch, Room::bytes<std::int16_t>(landmarks_.stride) + Room::bytes<std::int32_t>(count) +
                         Room::bytes<float>(features) + Room::bytes<float>(width));
  const auto words = room.take<std::int16_t>(landmarks_.stride);
  const auto dots = room.take<std::int32_t>(count);
  const auto kernel = room.take<float>(features), logits = room.take<float>(width);
  const float scale = to_words(embedding, words);
  dot_rows(landmarks_.values, words, dots);
  const auto size = static_cast<Eigen::Index>(count);
  const Eigen::Map<const Eigen::ArrayXi> products(dots.data(), size);
  const Eigen::Map<const Eigen::ArrayXf> scales(landmarks_.scales.data(), size);
  Eigen::Map<Eigen::ArrayXf>(kernel.data(), size) =
      ((products.cast<float>() * scales * scale - 1.0F) * 2.0F).exp();
  if (linear_)
    std::copy(embedding.begin(), embedding.end(), kernel.begin() + static_cast<std::ptrdiff_t>(count));
  sum_rows(weights_, kernel, logits);
  for (float& logit : logits) logit *= weight_scale_;
  return decide(logits.first(columns_), probabilities);
}

HeadDecision Head::decide(std::span<float> logits, std::span<float> probabilities) const noexcept {
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  const auto columns = static_cast<Eigen::Index>(logits.size());
  const auto present = static_cast<Eigen::Index>(column_routes_.size());
  Eigen::Map<Eigen::ArrayXf> scaled(logits.data(), columns);
  scaled /= calibration_.temperature;
  Eigen::Index best = 0, second = 0;
  const float top = scaled.head(present).maxCoeff(&best);
  scaled[best] = kLeast;
  const float next = present > 1 ? scaled.head(present).maxCoeff(&second) : kLeast;
  if (present == 1) second = best;

  // The others share what is left in proportion to their part in the softmax.
  const float rival = std::max(scaled.maxCoeff(), calibration_.none_logit);
  float log_odds = Calibration::kNoRival, share = 0;
  std::fill(probabilities.begin(), probabilities.end(), 0.0F);
  if (std::isfinite(rival)) {
    scaled = (scaled - rival).exp();
    scaled[best] = 0;
    const float rivals = scaled.sum() + std::exp(calibration_.none_logit - rival);
    log_odds = std::clamp(top - rival - std::log(rivals), -50.0F, 50.0F);
    share = 1 / rivals;
  }
  const float probability = calibration_.probability(log_odds);
  if (share > 0) {
    for (Eigen::Index c = 0; c < present; ++c) {
      probabilities[column_routes_[static_cast<std::size_t>(c)]] =
          std::min(scaled[c] * share * (1 - probability), probability);
    }
  }

  HeadDecision decision;
  decision.best = column_routes_[static_cast<std::size_t>(best)];
  decision.second = column_routes_[static_cast<std::size_t>(second)];
  probabilities[decision.best] = decision.probability = probability;
  decision.second_probability = second == best ? 0 : probabilities[decision.second];
  decision.margin = present > 1 ? top - next : log_odds;
  decision.accepted = probability >= thresholds_[decision.best];
  return decision;
}

HeadDecision Head::choose(std::span<const float> scores) const noexcept {
  HeadDecision d;
  d.best = static_cast<std::uint32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  d.second = d.best;
  for (std::uint32_t r = 0; r < scores.size(); ++r) {
    if (r != d.best && (d.second == d.best || scores[r] > scores[d.second])) d.second = r;
  }
  d.probability = scores[d.best];
  d.second_probability = d.second == d.best ? 0 : scores[d.second];
  d.margin = d.probability - d.second_probability;
  d.accepted = d.probability >= thresholds_[d.best];
  return d;
}

// semantic-router 0.1, SemanticRouter._semantic_classify: the index returns the top_k utterances of all
// routes by cosine; their scores are grouped by route and aggregated; the highest aggregate wins.
HeadDecision Head::score_neighbours(std::span<const float> embedding, std::span<float> scores,
                                    Scratch& scratch, std::size_t skip) const noexcept {
  const std::size_t count = labels_.size(), usable = count - (skip < count ? 1 : 0),
                    k = std::min(top_k_, usable);
  Room room(scratch,
            Room::bytes<float>(count) + 2 * Room::bytes<float>(k) + Room::bytes<float>(scores.size()));
  const auto cosines = room.take<float>(count), nearest = room.take<float>(k), who = room.take<float>(k),
             counts = room.take<float>(scores.size());
  dot_rows(points_, embedding, cosines);
  if (skip < count) cosines[skip] = -std::numeric_limits<float>::infinity();
  std::size_t found = 0;
  for (std::size_t i = 0; i < count; ++i) {  // insertion into a short sorted list; the first of equals stays
    if (i == skip || (found == k && (k == 0 || cosines[i] <= nearest[k - 1]))) continue;
    std::size_t at = found < k ? found++ : k - 1;
    for (; at > 0 && nearest[at - 1] < cosines[i]; --at) nearest[at] = nearest[at - 1], who[at] = who[at - 1];
    nearest[at] = cosines[i];
    who[at] = static_cast<float>(labels_[i]);  // exact: there are fewer than 2^24 routes
  }
  std::fill(counts.begin(), counts.end(), 0.0F);
  std::fill(scores.begin(), scores.end(),
            aggregation_ == config::Aggregation::kSum ? -static_cast<float>(top_k_) : -1.0F);
  for (std::size_t i = 0; i < found; ++i) {
    const auto route = static_cast<std::size_t>(who[i]);
    if (aggregation_ == config::Aggregation::kMax) {
      scores[route] = std::max(scores[route], nearest[i]);
    } else {
      scores[route] = counts[route] == 0 ? nearest[i] : scores[route] + nearest[i];
    }
    counts[route] += 1;
  }
  if (aggregation_ == config::Aggregation::kMean) {
    for (std::size_t r = 0; r < scores.size(); ++r) scores[r] /= std::max(counts[r], 1.0F);
  }
  return choose(scores);
}

}  // namespace waybill::route
