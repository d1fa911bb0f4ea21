// The router head: from an embedding to calibrated probabilities of routes, a threshold for each, and the
// decision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/gemv.h"
#include "base/progress.h"
#include "base/result.h"
#include "config/config.h"
#include "route/calibration.h"

namespace waybill::route {

// What a head is fitted on. Embeddings are row-major and of length 1. A route may have no utterances (it is
// then never chosen), and the same text may stand in two routes.
struct LabelledEmbeddings {
  std::span<const float> embeddings;      // [n, dim]
  std::span<const std::uint32_t> labels;  // [n], each < routes
  std::size_t dim = 0, routes = 0;
  std::span<const float> out_of_scope;  // [m, dim]; optional: prompts that belong to no route
};

struct HeadOptions {
  config::Scoring scoring = config::Scoring::kKernel;
  double reject_quantile = 0.05;  // what an automatic threshold rejects of the utterances, left out
  std::vector<std::optional<float>> thresholds;                  // [routes] or empty; not given: automatic
  config::Aggregation aggregation = config::Aggregation::kMean;  // scoring: aurelio
  std::size_t top_k = 5;                                         // scoring: aurelio
  // What a decision may cost: beyond `exact` examples only so many of them are landmarks, and not all; with
  // none of them the head is linear (kernel_features.h).
  std::size_t exact = 3000, landmarks = 1500;
  unsigned threads = 0;  // for the fit; 0: one per core. The result does not depend on it
  Progress progress;
  std::stop_token stop;  // asked between steps of the fit
};

// The decision about one embedding. With scoring: aurelio the probabilities are aggregates of cosines.
struct HeadDecision {
  std::uint32_t best = 0, second = 0;  // second == best when there is one route
  float probability = 0, second_probability = 0;
  float margin = 0;       // log-odds (aurelio: aggregate) by which best leads second
  bool accepted = false;  // probability >= the threshold of best
};

// How the fit did on its own utterances, each left out in turn.
struct ReliabilityBin {  // probabilities in [i / 10, (i + 1) / 10)
  std::uint64_t count = 0;
  double mean_probability = 0, accuracy = 0;
};
struct RouteStatistics {
  std::uint64_t utterances = 0;
  double accuracy = 0;  // of its utterances, left out
  float low = 0, quartile = 0, median = 0,
        upper_quartile = 0;  // quantiles 0.05, 0.25, 0.5, 0.75 of their best probability
};
struct HeadStatistics {
  double accuracy = 0;                      // over utterances of routes that have two or more
  double calibration_error = 0;             // expected calibration error over the bins
  std::vector<ReliabilityBin> reliability;  // 10
  std::vector<RouteStatistics> routes;
};

// scoring: kernel
//   score_r(x) = sum_j A_jr k(z_j, x), k = exp(2 (cos - 1)): the sum of multinomial logistic regression and 5
//   times ridge regression on the same kernel, which costs no more than one (docs/decisions has the
//   measurements). Classes count alike whatever their number of utterances. Probabilities: calibration.h.
// scoring: aurelio
//   As semantic-router scores: the top_k nearest utterances, grouped by route, aggregated; others get the
//   least.
//
// Immutable; all const functions may run on any number of threads, each with a Scratch of its own.
class Head {
 public:
  using Scratch = std::vector<std::byte>;

  // Fails with kInvalidInput for sizes that do not fit, no utterances, a label out of range, numbers that are
  // not finite; with kCancelled when asked to stop. CPU time is given in docs/decisions/0002-router-head.md.
  [[nodiscard]] static Result<Head> fit(const LabelledEmbeddings& data, const HeadOptions& options = {});

  // embedding [dim], probabilities [routes]: calibrated for the best route; the rest is shared out among the
  // others and "none of them", so their sum is at most 1. Allocates only when the scratch is used for the
  // first time.
  HeadDecision score(std::span<const float> embedding, std::span<float> probabilities,
                     Scratch& scratch) const noexcept;

  [[nodiscard]] std::size_t dim() const noexcept { return dim_; }
  [[nodiscard]] std::size_t routes() const noexcept { return thresholds_.size(); }
  [[nodiscard]] config::Scoring scoring() const noexcept { return scoring_; }
  [[nodiscard]] std::span<const float> thresholds() const noexcept { return thresholds_; }
  [[nodiscard]] const HeadStatistics& statistics() const noexcept { return statistics_; }
  // Multiply-adds of one score().
  [[nodiscard]] std::size_t cost() const noexcept;

  // What score() would have said about each utterance [n] had it not been fitted on; empty after
  // deserialize().
  [[nodiscard]] std::span<const HeadDecision> leave_one_out() const noexcept { return leave_one_out_; }

  // A versioned, checksummed file; deserialize() fails with kCorrupt or kUnsupported and a sentence.
  [[nodiscard]] std::string serialize() const;
  [[nodiscard]] static Result<Head> deserialize(std::string_view bytes);

 private:
  friend class HeadFitter;

  // probabilities from [columns_] logits, which are used up; those of absent routes are not there
  // (column_routes_).
  HeadDecision decide(std::span<float> logits, std::span<float> probabilities) const noexcept;
  HeadDecision choose(std::span<const float> scores) const noexcept;
  HeadDecision score_neighbours(std::span<const float> embedding, std::span<float> scores, Scratch& scratch,
                                std::size_t skip) const noexcept;

  config::Scoring scoring_ = config::Scoring::kKernel;
  config::Aggregation aggregation_ = config::Aggregation::kMean;
  std::size_t dim_ = 0, top_k_ = 0;
  // kernel: landmarks [M, dim]; weights [M (+ dim when linear_), columns rounded up to kHalfColumns], to be
  // multiplied by weight_scale_. What is read for each decision is what bounds its speed: bytes, and the head
  // is fitted on the embeddings as they are after rounding to bytes; halves, whose rounding changes nothing
  // that can be seen.
  ByteRows landmarks_;
  std::vector<std::uint16_t> weights_;
  float weight_scale_ = 1;
  // aurelio: all utterances [n, dim] and their labels.
  std::vector<float> points_;
  std::vector<std::uint32_t> labels_;
  std::vector<std::uint32_t> column_routes_;  // the route of each column; a last column may be out of scope
  std::size_t columns_ = 0;
  bool linear_ = false;
  Calibration calibration_;
  std::vector<float> thresholds_;
  HeadStatistics statistics_;
  std::vector<HeadDecision> leave_one_out_;
};

}  // namespace waybill::route
