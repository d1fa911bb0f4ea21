#include "cli/charts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "base/html.h"

namespace waybill::cli {
namespace {

constexpr std::array<std::string_view, 4> kColors = {"var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)"};

std::string_view color(std::size_t i) { return kColors[i % kColors.size()]; }

template <class... Arguments>
void append(std::string& out, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Arguments>(arguments)...);
}

// Steps of 1, 2 or 5 times a power of ten, about five of them.
double tick_step(double span) {
  const double raw = span / 5;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power * 1.0001) return factor * power;
  }
  return 10 * power;
}

std::string tick_text(const Axis& axis, double value) {
  return axis.percent ? fmt::format("{:.0f} %", value * 100) : fmt::format("{:.4g}", value);
}

std::string legend_line(const std::vector<std::string>& names) {
  if (names.size() < 2) return {};
  std::string out = "<p class=legend>";
  for (std::size_t i = 0; i < names.size(); ++i) {
    append(out, "<span><i style=\"background:{}\"></i>{}</span>", color(i), escape_html(names[i]));
  }
  return out + "</p>";
}

// The plotting area of line_plot, in SVG units.
struct Frame {
  static constexpr double kLeft = 58, kTop = 10, kWidth = 430, kHeight = 300;
  const Axis& x;
  const Axis& y;

  [[nodiscard]] double at_x(double value) const { return kLeft + kWidth * (value - x.min) / (x.max - x.min); }
  [[nodiscard]] double at_y(double value) const {
    return kTop + kHeight * (1 - (value - y.min) / (y.max - y.min));
  }
};

std::string axes(const Frame& frame) {
  std::string out;
  const double right = Frame::kLeft + Frame::kWidth;
  const double bottom = Frame::kTop + Frame::kHeight;
  const double x_step = tick_step(frame.x.max - frame.x.min);
  const double y_step = tick_step(frame.y.max - frame.y.min);
  for (double v = std::ceil(frame.x.min / x_step) * x_step; v <= frame.x.max + x_step * 1e-6; v += x_step) {
    append(out, "<line class=grid x1={0:.1f} x2={0:.1f} y1={1} y2={2} />", frame.at_x(v), Frame::kTop,
           bottom);
    append(out, "<text class=tick text-anchor=middle x={:.1f} y={}>{}</text>", frame.at_x(v), bottom + 18,
           tick_text(frame.x, v));
  }
  for (double v = std::ceil(frame.y.min / y_step) * y_step; v <= frame.y.max + y_step * 1e-6; v += y_step) {
    append(out, "<line class=grid x1={1} x2={2} y1={0:.1f} y2={0:.1f} />", frame.at_y(v), Frame::kLeft,
           right);
    append(out, "<text class=tick text-anchor=end x={} y={:.1f}>{}</text>", Frame::kLeft - 8,
           frame.at_y(v) + 4, tick_text(frame.y, v));
  }
  append(out, "<text class=label text-anchor=middle x={} y={}>{}</text>", Frame::kLeft + Frame::kWidth / 2,
         bottom + 40, escape_html(frame.x.label));
  append(out, "<text class=label text-anchor=middle transform=\"translate(14 {}) rotate(-90)\">{}</text>",
         Frame::kTop + Frame::kHeight / 2, escape_html(frame.y.label));
  return out;
}

}  // namespace

std::string line_plot(const Axis& x, const Axis& y, const std::vector<Series>& series, bool diagonal) {
  const Frame frame{x, y};
  std::string out = "<svg viewBox=\"0 0 512 360\" role=img class=plot>" + axes(frame);
  if (diagonal) {
    append(out, "<line class=diagonal x1={:.1f} y1={:.1f} x2={:.1f} y2={:.1f} />", frame.at_x(x.min),
           frame.at_y(y.min), frame.at_x(x.max), frame.at_y(y.max));
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < series.size(); ++i) {
    names.push_back(series[i].name);
    if (series[i].line) {
      append(out, "<polyline fill=none stroke=\"{}\" stroke-width=2.2 points=\"", color(i));
      for (const Point& p : series[i].points) append(out, "{:.1f},{:.1f} ", frame.at_x(p.x), frame.at_y(p.y));
      out += "\" />";
    }
    for (const Point& p : series[i].points) {
      if (p.weight <= 0) continue;
      append(
          out,
          "<circle cx={:.1f} cy={:.1f} r={:.1f} fill=\"{}\" fill-opacity=.75><title>{}, {}</title></circle>",
          frame.at_x(p.x), frame.at_y(p.y), 2.5 + 9 * std::sqrt(p.weight), color(i), tick_text(x, p.x),
          tick_text(y, p.y));
    }
  }
  return out + "</svg>" + legend_line(names);
}

std::string bar_chart(const std::vector<std::string>& legend, const std::vector<Bar>& bars, double max) {
  const double thickness = legend.size() > 1 ? 8 : 12;
  const double row = thickness * static_cast<double>(std::max<std::size_t>(1, legend.size())) + 10;
  constexpr double kLeft = 190;
  constexpr double kWidth = 330;
  const double height = row * static_cast<double>(bars.size());
  std::string out = legend_line(legend);
  append(out, "<svg viewBox=\"0 0 680 {:.0f}\" role=img class=bars>", height + 4);
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double top = row * static_cast<double>(i);
    append(out, "<text class=name text-anchor=end x={} y={:.1f}>{}</text>", kLeft - 8, top + row / 2,
           escape_html(bars[i].label));
    double right = 0;
    for (std::size_t j = 0; j < bars[i].values.size(); ++j) {
      const double share = max > 0 ? std::clamp(bars[i].values[j] / max, 0.0, 1.0) : 0;
      right = std::max(right, share * kWidth);
      append(out, "<rect x={} y={:.1f} width={:.1f} height={:.1f} rx=1.5 fill=\"{}\" />", kLeft,
             top + 4 + thickness * static_cast<double>(j), share * kWidth, thickness - 1, color(j));
    }
    append(out, "<text class=tick x={:.1f} y={:.1f}>{}</text>", kLeft + right + 8, top + row / 2,
           escape_html(bars[i].text));
  }
  return out + "</svg>";
}

std::string heat_map(const HeatMap& map) {
  constexpr std::size_t kMaxLabels = 40;
  const std::size_t largest = std::max({map.rows.size(), map.columns.size(), std::size_t{1}});
  const bool labels = largest <= kMaxLabels;
  const double cell = std::clamp(640.0 / static_cast<double>(largest), 3.0, 34.0);
  const double left = labels ? 150 : 24;
  const double top = labels ? 110 : 24;
  const double width = left + cell * static_cast<double>(map.columns.size());
  const double height = top + cell * static_cast<double>(map.rows.size());
  std::string out;
  append(out, "<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=img class=heat style=\"max-width:{:.0f}px\">",
         width + 2, height + 2, std::max(width, 320.0));
  append(out, "<rect class=field x={} y={} width={:.1f} height={:.1f} />", left, top, width - left,
         height - top);
  append(out, "<text class=label x={} y=14>{}</text>", left, escape_html(map.column_title));
  append(out, "<text class=label transform=\"translate(12 {}) rotate(-90)\" text-anchor=end>{}</text>", top,
         escape_html(map.row_title));
  for (std::size_t r = 0; r < map.counts.size(); ++r) {
    const double y = top + cell * static_cast<double>(r);
    std::size_t total = 0;
    for (const std::size_t count : map.counts[r]) total += count;
    if (labels)
      append(out, "<text class=tick text-anchor=end x={} y={:.1f}>{}</text>", left - 6, y + cell / 2 + 4,
             escape_html(map.rows[r]));
    for (std::size_t c = 0; c < map.counts[r].size(); ++c) {
      const std::size_t count = map.counts[r][c];
      if (count == 0) continue;
      const double share = static_cast<double>(count) / static_cast<double>(total);
      append(out,
             "<rect x={:.1f} y={:.1f} width={:.1f} height={:.1f} fill=\"{}\" fill-opacity={:.2f}><title>{} → "
             "{}: {} ({:.0f} %)</title></rect>",
             left + cell * static_cast<double>(c), y, cell - 0.4, cell - 0.4,
             map.rows[r] == map.columns[c] ? "var(--c1)" : "var(--c2)", 0.15 + 0.85 * std::sqrt(share),
             escape_html(map.rows[r]), escape_html(map.columns[c]), count, share * 100);
      if (labels && cell >= 20) {
        append(out, "<text class=count text-anchor=middle x={:.1f} y={:.1f}>{}</text>",
               left + cell * (static_cast<double>(c) + 0.5), y + cell / 2 + 4, count);
      }
    }
  }
  for (std::size_t c = 0; labels && c < map.columns.size(); ++c) {
    append(out, "<text class=tick transform=\"translate({:.1f} {}) rotate(-45)\">{}</text>",
           left + cell * (static_cast<double>(c) + 0.6), top - 6, escape_html(map.columns[c]));
  }
  return out + "</svg>";
}

std::string html_table(const std::vector<std::string>& titles,
                       const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<table><thead><tr>";
  for (const std::string& title : titles) out += "<th>" + title + "</th>";
  out += "</tr></thead><tbody>";
  for (const auto& row : rows) {
    out += "<tr>";
    for (const std::string& cell : row) out += "<td>" + cell + "</td>";
    out += "</tr>";
  }
  return out + "</tbody></table>";
}

void HtmlPage::add_figure(std::string_view value, std::string_view label) {
  append(figures_, "<div><b>{}</b><span>{}</span></div>", escape_html(value), escape_html(label));
}

void HtmlPage::add_section(std::string_view title, std::string_view note, std::string_view body) {
  append(sections_, "<section><h2>{}</h2><p>{}</p>{}</section>\n", escape_html(title), escape_html(note),
         body);
}

std::string HtmlPage::text() const {
  constexpr std::string_view kStyle = R"(
:root{--bg:#fbfaf7;--card:#fff;--ink:#1d2430;--soft:#667085;--line:#e4e2dc;--c1:#1f6f8b;--c2:#d1603d;--c3:#7a9e3b;--c4:#8a5fa8}
@media(prefers-color-scheme:dark){:root{--bg:#14171c;--card:#1c2027;--ink:#e6e8eb;--soft:#98a2b3;--line:#2e343e;--c1:#5db5d3;--c2:#f0875f;--c3:#a9cc63;--c4:#bd93db}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1180px;margin:0 auto;padding:32px 20px 60px}h1{font-size:26px;margin:0}header p{color:var(--soft);margin:4px 0 20px}
.figures{display:flex;flex-wrap:wrap;gap:12px;margin-bottom:20px}.figures div{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 18px}
.figures b{display:block;font-size:24px;font-variant-numeric:tabular-nums}.figures span{color:var(--soft);font-size:13px}
.grid2{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(520px,100%),1fr));gap:16px}
section{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:18px 20px;overflow-x:auto}
h2{font-size:17px;margin:0 0 2px}section>p{color:var(--soft);margin:0 0 10px;font-size:13.5px}
svg{display:block;width:100%;height:auto}svg text{fill:var(--ink);font:11.5px system-ui,sans-serif}svg .tick{fill:var(--soft);font-size:11px}
svg .label{fill:var(--soft);font-size:12px}svg .grid{stroke:var(--line)}svg .diagonal{stroke:var(--soft);stroke-dasharray:4 4}
svg .field{fill:none;stroke:var(--line)}svg .count{font-size:10.5px}
.legend{display:flex;gap:18px}.legend i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:13.5px}
th,td{padding:4px 10px;border-bottom:1px solid var(--line);text-align:right}th:first-child,td:first-child{text-align:left}th{color:var(--soft);font-weight:500}
)";
  return fmt::format(
      "<!doctype html>\n<html lang=en>\n<head><meta charset=utf-8><meta name=viewport "
      "content=\"width=device-width\">"
      "<title>{0}</title><style>{1}</style></head>\n<body><main><header><h1>{0}</h1><p>{2}</p></header>"
      "<div class=figures>{3}</div>\n<div class=grid2>\n{4}</div></main></body>\n</html>\n",
      escape_html(title_), kStyle, escape_html(subtitle_), figures_, sections_);
}

}  // namespace waybill::cli
