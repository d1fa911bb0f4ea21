// From decisions on labelled texts to figures. No model, no files: pure counting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "route/decision.h"

namespace waybill::route {

// One labelled text and what became of it. kNoRoute as a label: it belongs to no route; as `decided`: the
// default.
struct Judgement {
  std::uint32_t label = Decision::kNoRoute;
  std::uint32_t best = Decision::kNoRoute;     // the best route, threshold or not
  std::uint32_t decided = Decision::kNoRoute;  // what the encoder tier answered
  float score = 0;                             // calibrated probability of `best`
};

struct RouteMetrics {
  std::string route;        // "(default)" for the texts of no route and the decisions for none
  std::size_t support = 0;  // texts with this label
  std::size_t decided = 0;  // texts decided for it
  std::size_t correct = 0;
  [[nodiscard]] double precision() const noexcept;  // 0 when nothing was decided for it
  [[nodiscard]] double recall() const noexcept;     // 0 without support
  [[nodiscard]] double f1() const noexcept;
};

struct ConfusionPair {
  std::string label, decided;
  std::size_t count = 0;
};

// Texts whose score fell into [low, high).
struct ScoreBin {
  double low = 0, high = 0;
  std::size_t count = 0;
  double mean_score = 0, accuracy = 0;
};

struct Metrics {
  std::size_t in_scope = 0, out_of_scope = 0;

  // Of the in-scope texts.
  double accuracy = 0;          // the best route is the labelled one, thresholds set aside
  double kept = 0;              // not sent to the default route
  double correct_and_kept = 0;  // decided for the labelled route

  // Of the out-of-scope texts; NaN when there are none.
  double out_of_scope_recall = 0;  // sent to the default route
  double out_of_scope_auroc =
      0;  // P(score of an in-scope text > score of an out-of-scope text), ties count half

  double decision_accuracy = 0;  // of all texts: the labelled route, or default where out of scope

  // Precision, recall and F1 of decisions (thresholds applied). The macro averages are over routes with
  // support, the default not counted.
  std::vector<RouteMetrics> routes;  // in the order of the router; "(default)" last
  double macro_precision = 0, macro_recall = 0, macro_f1 = 0;

  std::vector<ConfusionPair> confusions;  // label != decided, most frequent first

  // How far the score of the best route is to be believed, on in-scope texts: ten bins of equal width, and
  // the mean distance between score and accuracy weighted by bin (expected calibration error, Naeini et al.
  // 2015).
  std::vector<ScoreBin> reliability;
  double calibration_error = 0;
};

[[nodiscard]] Metrics compute_metrics(std::span<const Judgement> judgements,
                                      std::span<const std::string> routes);

// P(a > b) + P(a = b) / 2 for a of `positive` and b of `negative`; NaN when one is empty.
[[nodiscard]] double auroc(std::span<const float> positive, std::span<const float> negative);

// The value below which the share `q` of the values lies (nearest rank); 0 for none. Reorders `values`.
[[nodiscard]] double percentile(std::span<double> values, double q);

}  // namespace waybill::route
