// The evaluation on the terminal.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "cli/evaluation_report.h"
#include "cli/terminal.h"

namespace waybill::cli {
namespace {

using Align = Table::Align;

std::string percent(double share) {
  return std::isfinite(share) ? fmt::format("{:.1f} %", share * 100) : "-";
}

std::string heading(std::string_view text) { return "\n" + paint(Style::kBold, text) + "\n"; }

std::string overview(const route::Evaluation& evaluation) {
  const route::Metrics& m = evaluation.metrics;
  Table table({{"", Align::kLeft}, {"", Align::kRight}, {"", Align::kLeft}});
  const auto row = [&table](std::string_view name, double share, std::string_view meaning) {
    table.add_row(
        {fmt::format("  {}", name), paint(Style::kBold, percent(share)), paint(Style::kDim, meaning)});
  };
  row("accuracy", m.accuracy, "the best route is the labelled one");
  row("kept", m.kept, "in scope and above the threshold");
  row("right and kept", m.correct_and_kept, "in scope and decided for the labelled route");
  if (m.out_of_scope > 0) {
    row("out of scope found", m.out_of_scope_recall, "sent to the default route");
    row("out of scope AUROC", m.out_of_scope_auroc, "an in-scope score is above an out-of-scope one");
  }
  if (evaluation.rechecked > 0)
    row("asked again", evaluation.rechecked, "close calls that the exact model decided");
  row("macro F1", m.macro_f1, "of decisions, mean over routes");
  row("calibration error", m.calibration_error, "mean distance of score and accuracy");
  return table.text();
}

std::string tiers(const route::Evaluation& evaluation) {
  std::string out;
  if (evaluation.static_tier) {
    const route::StaticMetrics& s = *evaluation.static_tier;
    out += heading("Static tier");
    Table table({{"", Align::kLeft}, {"", Align::kRight}});
    table.add_row({"  alone: accuracy", percent(s.accuracy)});
    table.add_row({"  alone: same best route as the encoder", percent(s.agreement)});
    table.add_row({"  in the cascade: decides", percent(s.decided)});
    table.add_row({"  in the cascade: agrees where it decides", percent(s.decided_agreement)});
    if (std::isfinite(s.decided_out_of_scope)) {
      table.add_row({"  in the cascade: decides of out of scope", percent(s.decided_out_of_scope)});
    }
    table.add_row({"  cascade accuracy", percent(s.cascade_accuracy)});
    out += table.text();
  }
  if (!evaluation.latency.empty()) {
    out += heading("Latency of one decision, one thread");
    Table table({{"  tier", Align::kLeft},
                 {"median", Align::kRight},
                 {"mean", Align::kRight},
                 {"p99", Align::kRight}});
    for (const route::LatencyMetrics& l : evaluation.latency) {
      table.add_row({fmt::format("  {}", to_string(l.tier)), human_seconds(l.p50_us * 1e-6),
                     human_seconds(l.mean_us * 1e-6), human_seconds(l.p99_us * 1e-6)});
    }
    out += table.text();
  }
  if (evaluation.precision) {
    const route::PrecisionAgreement& p = *evaluation.precision;
    out += heading(fmt::format("{} beside {}", to_string(p.precision), to_string(p.reference)));
    out += fmt::format("  same best route {}, same decision {}, cosine {:.5f} (least {:.5f})\n",
                       percent(p.same_route), percent(p.same_decision), p.mean_cosine, p.min_cosine);
  }
  return out;
}

std::string routes(const route::Evaluation& evaluation, bool all_routes) {
  constexpr std::size_t kShown = 12;
  std::vector<const route::RouteMetrics*> order;
  for (const route::RouteMetrics& r : evaluation.metrics.routes) {
    if (r.support + r.decided > 0) order.push_back(&r);
  }
  std::ranges::sort(order, {}, [](const route::RouteMetrics* r) { return std::pair(r->f1(), r); });
  const bool cut = !all_routes && order.size() > kShown + 2;
  std::string out =
      heading(cut ? fmt::format("Routes: the {} that do worst of {}", kShown, order.size()) : "Routes");
  Table table({{"  route", Align::kLeft},
               {"texts", Align::kRight},
               {"precision", Align::kRight},
               {"recall", Align::kRight},
               {"F1", Align::kRight},
               {"", Align::kLeft}});
  for (std::size_t i = 0; i < (cut ? kShown : order.size()); ++i) {
    const route::RouteMetrics& r = *order[i];
    const Style style = r.f1() >= 0.9 ? Style::kGreen : r.f1() >= 0.7 ? Style::kYellow : Style::kRed;
    table.add_row({"  " + fit_width(r.route, 40), fmt::format("{}", r.support), percent(r.precision()),
                   percent(r.recall()), percent(r.f1()), paint(style, bar(r.f1(), 16))});
  }
  return out + table.text();
}

std::string confusions(const route::Evaluation& evaluation) {
  const auto& list = evaluation.metrics.confusions;
  if (list.empty()) return {};
  constexpr std::size_t kShown = 8;
  Table table({{"  texts", Align::kRight}, {"labelled", Align::kLeft}, {"decided", Align::kLeft}});
  for (std::size_t i = 0; i < std::min(kShown, list.size()); ++i) {
    table.add_row(
        {fmt::format("{}", list[i].count), fit_width(list[i].label, 40), fit_width(list[i].decided, 40)});
  }
  return heading("Most frequent confusions") + table.text();
}

}  // namespace

std::string evaluation_text(const route::Evaluation& evaluation, std::size_t width, bool all_routes) {
  const route::Metrics& m = evaluation.metrics;
  const std::string title = fmt::format("{}: {} texts in scope, {} out of scope; {} routes of {} utterances",
                                        std::filesystem::path(evaluation.test_name).filename().string(),
                                        m.in_scope, m.out_of_scope, evaluation.routes, evaluation.utterances);
  return paint(Style::kBold, fit_width(title, width)) + "\n\n" + overview(evaluation) + tiers(evaluation) +
         routes(evaluation, all_routes) + confusions(evaluation);
}

}  // namespace waybill::cli
