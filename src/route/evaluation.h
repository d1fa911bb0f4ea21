// How good the decisions are on labelled texts: what `waybill eval` shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "config/config.h"
#include "embed/model.h"
#include "route/dataset.h"
#include "route/metrics.h"
#include "route/router.h"

namespace waybill::route {

// The static tier beside the encoder.
struct StaticMetrics {
  double accuracy = 0;   // alone, on in-scope texts: its best route is the labelled one
  double agreement = 0;  // alone, on all texts: its best route is the encoder's
  double decided = 0;    // share of the in-scope texts that it decides in the cascade
  double decided_agreement =
      0;  // of all those it decides: the encoder decides the same; NaN when there are none
  double decided_out_of_scope =
      0;  // share of the out-of-scope texts that it decides; NaN when there are none
  double cascade_accuracy =
      0;  // best route right on in-scope texts: the static one where it decides, else the encoder's
};

// Wall time of single decisions, one thread, in microseconds.
struct LatencyMetrics {
  Tier tier = Tier::kEncoder;
  std::size_t samples = 0;
  double mean_us = 0, p50_us = 0, p99_us = 0;
};

// Decisions with one precision of the encoder against those with another.
struct PrecisionAgreement {
  embed::Precision precision{}, reference{};
  double same_route = 0;                   // the best route is the same, of all texts
  double same_decision = 0;                // the decision is the same, rejections included
  double min_cosine = 0, mean_cosine = 0;  // between the embeddings
};

struct Evaluation {
  std::string test_name;
  std::size_t routes = 0, utterances = 0;
  Metrics metrics;                           // of the encoder tier
  double rechecked = 0;                      // share of the texts that the exact model decided
  std::optional<StaticMetrics> static_tier;  // empty when there is none
  std::vector<LatencyMetrics> latency;       // cache, static, encoder
  std::optional<PrecisionAgreement> precision;
  std::vector<Judgement> judgements;  // of the encoder tier, one for each text, in order
};

struct EvaluationOptions {
  unsigned threads = 0;                      // for embedding; 0: one per core
  std::size_t latency_samples = 200;         // single decisions timed per tier; 0: none
  const embed::Model* reference = nullptr;   // another precision of the same model to compare with, and ...
  const Router* reference_router = nullptr;  // ... the router loaded with it
  Progress progress = {};
};

// Labels are route names; out-of-scope labels (dataset.h) and those that name the default route mean "no
// route". Fails with kInvalidInput for a label that is neither, with its file:line.
[[nodiscard]] Result<Evaluation> evaluate(const Router& router, const embed::Model& model,
                                          const Dataset& test, const EvaluationOptions& options = {});

// A configuration whose routes are the labels of these examples (all of the data set when `chosen` is not
// given), out-of-scope labels aside, which become out-of-scope utterances; everything else is taken from
// `base`.
[[nodiscard]] config::Config config_of_examples(const Dataset& dataset, std::span<const std::size_t> chosen,
                                                config::Config base = {});

}  // namespace waybill::route
