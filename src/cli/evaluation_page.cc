// The evaluation as a page with plots.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "cli/charts.h"
#include "cli/evaluation_report.h"
#include "cli/terminal.h"

namespace waybill::cli {
namespace {

std::string percent(double share) {
  return std::isfinite(share) ? fmt::format("{:.1f} %", share * 100) : "-";
}

void add_figures(HtmlPage& page, const route::Evaluation& evaluation) {
  const route::Metrics& m = evaluation.metrics;
  page.add_figure(percent(m.accuracy), "accuracy");
  page.add_figure(percent(m.correct_and_kept), "right and kept");
  if (m.out_of_scope > 0) {
    page.add_figure(percent(m.out_of_scope_recall), "out of scope found");
    page.add_figure(percent(m.out_of_scope_auroc), "out of scope AUROC");
  }
  page.add_figure(percent(m.macro_f1), "macro F1");
  page.add_figure(percent(m.calibration_error), "calibration error");
  if (evaluation.static_tier)
    page.add_figure(percent(evaluation.static_tier->decided), "decided by the static tier");
}

void add_confusion(HtmlPage& page, const route::Metrics& metrics) {
  HeatMap map{.row_title = "labelled", .column_title = "decided", .rows = {}, .columns = {}, .counts = {}};
  std::unordered_map<std::string, std::size_t> index;
  for (const route::RouteMetrics& r : metrics.routes) {
    if (r.support + r.decided == 0) continue;
    index.emplace(r.route, map.rows.size());
    map.rows.push_back(r.route);
  }
  map.columns = map.rows;
  map.counts.assign(map.rows.size(), std::vector<std::size_t>(map.rows.size()));
  for (const route::RouteMetrics& r : metrics.routes) {
    if (const auto at = index.find(r.route); at != index.end())
      map.counts[at->second][at->second] = r.correct;
  }
  for (const route::ConfusionPair& pair : metrics.confusions) {
    map.counts[index.at(pair.label)][index.at(pair.decided)] = pair.count;
  }
  page.add_section(
      "Confusion matrix",
      "Rows are labels, columns decisions; the diagonal is right. Darker is a larger share of the row.",
      heat_map(map));
}

void add_reliability(HtmlPage& page, const route::Metrics& metrics) {
  std::size_t largest = 1;
  for (const route::ScoreBin& bin : metrics.reliability) largest = std::max(largest, bin.count);
  Series series{.name = "accuracy", .points = {}, .line = true};
  for (const route::ScoreBin& bin : metrics.reliability) {
    if (bin.count == 0) continue;
    series.points.push_back({.x = bin.mean_score,
                             .y = bin.accuracy,
                             .weight = static_cast<double>(bin.count) / static_cast<double>(largest)});
  }
  page.add_section(
      "Reliability",
      "A score of 80 % should be right 80 % of the time: the closer to the diagonal, the better. The area of "
      "a point is its number of texts.",
      line_plot({.label = "score"}, {.label = "accuracy"}, {series}, true));
}

void add_routes(HtmlPage& page, const route::Metrics& metrics) {
  std::vector<const route::RouteMetrics*> order;
  for (const route::RouteMetrics& r : metrics.routes) {
    if (r.support > 0) order.push_back(&r);
  }
  std::ranges::sort(order, {}, [](const route::RouteMetrics* r) { return std::pair(r->f1(), r); });
  std::vector<Bar> bars;
  for (const route::RouteMetrics* r : order) {
    bars.push_back({.label = r->route,
                    .values = {r->precision(), r->recall()},
                    .text = fmt::format("F1 {:.0f} %, {} texts", r->f1() * 100, r->support)});
  }
  page.add_section("Routes", "Precision and recall of decisions, thresholds applied; worst first.",
                   bar_chart({"precision", "recall"}, bars));
}

void add_latency(HtmlPage& page, const route::Evaluation& evaluation) {
  if (evaluation.latency.empty()) return;
  // Tiers differ by orders of magnitude: each decade from 0.1 µs on is one unit of length.
  const auto length = [](double us) { return std::max(0.05, std::log10(std::max(us, 0.1) * 10)); };
  double longest = 0;
  std::vector<Bar> bars;
  for (const route::LatencyMetrics& l : evaluation.latency) {
    longest = std::max(longest, length(l.p99_us));
    bars.push_back({.label = std::string(to_string(l.tier)),
                    .values = {length(l.p50_us), length(l.p99_us)},
                    .text = human_seconds(l.p50_us * 1e-6) + ", p99 " + human_seconds(l.p99_us * 1e-6)});
  }
  page.add_section("Latency by tier", "One decision on one thread; the scale is logarithmic.",
                   bar_chart({"median", "99th percentile"}, bars, longest));
}

// Scores of in-scope texts against those of out-of-scope ones, at every threshold.
std::vector<Point> roc(const std::vector<route::Judgement>& judgements) {
  std::vector<std::pair<float, bool>> scored;  // (score, in scope)
  for (const route::Judgement& j : judgements)
    scored.emplace_back(j.score, j.label != route::Decision::kNoRoute);
  std::ranges::sort(scored, std::ranges::greater{}, &std::pair<float, bool>::first);
  const auto in_scope =
      static_cast<double>(std::ranges::count(scored, true, &std::pair<float, bool>::second));
  const double out_of_scope = static_cast<double>(scored.size()) - in_scope;
  std::vector<Point> points = {{.x = 0, .y = 0}};
  double kept = 0;
  double wrong = 0;
  for (std::size_t i = 0; i < scored.size(); ++i) {
    (scored[i].second ? kept : wrong) += 1;
    const bool tie = i + 1 < scored.size() && scored[i + 1].first == scored[i].first;
    if (!tie) points.push_back({.x = wrong / out_of_scope, .y = kept / in_scope});
  }
  return points;
}

void add_out_of_scope(HtmlPage& page, const route::Evaluation& evaluation) {
  const route::Metrics& m = evaluation.metrics;
  if (m.out_of_scope == 0 || m.in_scope == 0) return;
  const Series curve{.name = "score as threshold", .points = roc(evaluation.judgements), .line = true};
  const Series chosen{.name = "thresholds in force",
                      .points = {{.x = 1 - m.out_of_scope_recall, .y = m.kept, .weight = 0.2}},
                      .line = false};
  page.add_section(
      "Out of scope",
      fmt::format("What a threshold keeps of in-scope texts against what it lets through; area {}.",
                  percent(m.out_of_scope_auroc)),
      line_plot({.label = "out of scope, let through"}, {.label = "in scope, kept"}, {curve, chosen}, true));
}

void add_static(HtmlPage& page, const route::Evaluation& evaluation) {
  if (!evaluation.static_tier) return;
  const route::StaticMetrics& s = *evaluation.static_tier;
  page.add_section("Static tier",
                   "Decides without a forward pass where it has been calibrated to agree with the encoder.",
                   html_table({"", ""}, {{"accuracy alone", percent(s.accuracy)},
                                         {"same best route as the encoder", percent(s.agreement)},
                                         {"decided in the cascade", percent(s.decided)},
                                         {"agreement where it decides", percent(s.decided_agreement)},
                                         {"out of scope that it decides", percent(s.decided_out_of_scope)},
                                         {"accuracy of the cascade", percent(s.cascade_accuracy)}}));
}

}  // namespace

std::string evaluation_page(const route::Evaluation& evaluation) {
  const route::Metrics& m = evaluation.metrics;
  HtmlPage page("Routes on " + std::filesystem::path(evaluation.test_name).filename().string(),
                fmt::format("{} texts in scope, {} out of scope; {} routes of {} utterances", m.in_scope,
                            m.out_of_scope, evaluation.routes, evaluation.utterances));
  add_figures(page, evaluation);
  add_reliability(page, m);
  add_out_of_scope(page, evaluation);
  add_routes(page, m);
  add_confusion(page, m);
  add_latency(page, evaluation);
  add_static(page, evaluation);
  return page.text();
}

}  // namespace waybill::cli
