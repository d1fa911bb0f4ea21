#include "route/metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/check.h"

namespace waybill::route {
namespace {

constexpr std::string_view kDefaultName = "(default)";
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double ratio(std::size_t part, std::size_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

void count_routes(std::span<const Judgement> judgements, std::span<const std::string> routes, Metrics& out) {
  const std::size_t none = routes.size();
  const auto slot = [none](std::uint32_t route) {
    return route == Decision::kNoRoute ? none : std::size_t{route};
  };
  for (const std::string& name : routes) out.routes.push_back({.route = name});
  out.routes.push_back({.route = std::string(kDefaultName)});
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> confusions;
  for (const Judgement& judgement : judgements) {
    const std::size_t label = slot(judgement.label);
    const std::size_t decided = slot(judgement.decided);
    WAYBILL_CHECK(label < out.routes.size() && decided < out.routes.size());
    ++out.routes[label].support;
    ++out.routes[decided].decided;
    if (label == decided)
      ++out.routes[label].correct;
    else
      ++confusions[{label, decided}];
  }
  for (const auto& [pair, count] : confusions) {
    out.confusions.push_back({out.routes[pair.first].route, out.routes[pair.second].route, count});
  }
  std::sort(out.confusions.begin(), out.confusions.end(), [](const ConfusionPair& a, const ConfusionPair& b) {
    return std::tie(b.count, a.label, a.decided) < std::tie(a.count, b.label, b.decided);
  });
  std::size_t supported = 0;
  for (std::size_t i = 0; i < none; ++i) {
    if (out.routes[i].support == 0) continue;
    ++supported;
    out.macro_precision += out.routes[i].precision();
    out.macro_recall += out.routes[i].recall();
    out.macro_f1 += out.routes[i].f1();
  }
  if (supported == 0) return;
  for (double* mean : {&out.macro_precision, &out.macro_recall, &out.macro_f1})
    *mean /= static_cast<double>(supported);
}

void count_scope(std::span<const Judgement> judgements, Metrics& out) {
  std::size_t right = 0, kept = 0, right_and_kept = 0, found = 0;
  std::vector<float> inside, outside;
  for (const Judgement& judgement : judgements) {
    if (judgement.label == Decision::kNoRoute) {
      outside.push_back(judgement.score);
      found += judgement.decided == Decision::kNoRoute ? 1 : 0;
      continue;
    }
    inside.push_back(judgement.score);
    right += judgement.best == judgement.label ? 1 : 0;
    kept += judgement.decided != Decision::kNoRoute ? 1 : 0;
    right_and_kept += judgement.decided == judgement.label ? 1 : 0;
  }
  out.in_scope = inside.size();
  out.out_of_scope = outside.size();
  out.accuracy = ratio(right, inside.size());
  out.kept = ratio(kept, inside.size());
  out.correct_and_kept = ratio(right_and_kept, inside.size());
  out.out_of_scope_recall = outside.empty() ? kNone : ratio(found, outside.size());
  out.out_of_scope_auroc = auroc(inside, outside);
  out.decision_accuracy = ratio(right_and_kept + found, judgements.size());
}

void count_reliability(std::span<const Judgement> judgements, Metrics& out) {
  constexpr std::size_t kBins = 10;
  std::array<double, kBins> scores{}, right{};
  std::array<std::size_t, kBins> counts{};
  for (const Judgement& judgement : judgements) {
    if (judgement.label == Decision::kNoRoute) continue;
    const double score = std::clamp(static_cast<double>(judgement.score), 0.0, 1.0);
    const std::size_t bin = std::min(static_cast<std::size_t>(score * kBins), kBins - 1);
    ++counts[bin];
    scores[bin] += score;
    right[bin] += judgement.best == judgement.label ? 1 : 0;
  }
  for (std::size_t i = 0; i < kBins; ++i) {
    ScoreBin bin{.low = static_cast<double>(i) / kBins,
                 .high = static_cast<double>(i + 1) / kBins,
                 .count = counts[i]};
    if (bin.count != 0) {
      bin.mean_score = scores[i] / static_cast<double>(bin.count);
      bin.accuracy = right[i] / static_cast<double>(bin.count);
      out.calibration_error += ratio(bin.count, out.in_scope) * std::abs(bin.mean_score - bin.accuracy);
    }
    out.reliability.push_back(bin);
  }
}

}  // namespace

double RouteMetrics::precision() const noexcept { return ratio(correct, decided); }
double RouteMetrics::recall() const noexcept { return ratio(correct, support); }
double RouteMetrics::f1() const noexcept { return ratio(2 * correct, support + decided); }

Metrics compute_metrics(std::span<const Judgement> judgements, std::span<const std::string> routes) {
  Metrics out;
  count_scope(judgements, out);
  count_routes(judgements, routes, out);
  count_reliability(judgements, out);
  return out;
}

double auroc(std::span<const float> positive, std::span<const float> negative) {
  if (positive.empty() || negative.empty()) return kNone;
  std::vector<float> sorted(negative.begin(), negative.end());
  std::sort(sorted.begin(), sorted.end());
  double wins = 0;
  for (const float score : positive) {
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), score);
    wins += static_cast<double>(first - sorted.begin()) + static_cast<double>(last - first) / 2;
  }
  return wins / static_cast<double>(positive.size()) / static_cast<double>(negative.size());
}

double percentile(std::span<double> values, double q) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(values.size())));
  const auto at =
      values.begin() + static_cast<std::ptrdiff_t>(std::clamp<std::size_t>(rank, 1, values.size()) - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace waybill::route
