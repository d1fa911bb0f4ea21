// Plots as inline SVG and the page they stand on. Colours are CSS variables of the page, light or dark as the
// reader's system is; nothing is loaded from elsewhere.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace waybill::cli {

struct Point {
  double x = 0, y = 0;
  double weight = 0;  // area of the mark, 0 to 1; 0: no mark
};

struct Series {
  std::string name;
  std::vector<Point> points;
  bool line = true;
};

struct Axis {
  std::string label;
  double min = 0, max = 1;
  bool percent = true;  // ticks in per cent
};

// Lines over two linear axes; `diagonal` adds the line from corner to corner that a plot is compared with.
[[nodiscard]] std::string line_plot(const Axis& x, const Axis& y, const std::vector<Series>& series,
                                    bool diagonal);

struct Bar {
  std::string label;
  std::vector<double> values;  // one for each legend entry, 0 to `max`
  std::string text;            // after the bars
};

// Horizontal bars, one group a row.
[[nodiscard]] std::string bar_chart(const std::vector<std::string>& legend, const std::vector<Bar>& bars,
                                    double max = 1);

// A matrix of counts, rows against columns; each row's shade is its share of the row. Labels are left out
// where there are too many to read; every cell tells itself when pointed at.
struct HeatMap {
  std::string row_title, column_title;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<std::size_t>> counts;  // [row][column]
};
[[nodiscard]] std::string heat_map(const HeatMap& map);

// A table of cells that are HTML already; the first column is text, the others numbers.
[[nodiscard]] std::string html_table(const std::vector<std::string>& titles,
                                     const std::vector<std::vector<std::string>>& rows);

// One self-contained page.
class HtmlPage {
 public:
  explicit HtmlPage(std::string title, std::string subtitle)
      : title_(std::move(title)), subtitle_(std::move(subtitle)) {}

  // A large figure at the head of the page.
  void add_figure(std::string_view value, std::string_view label);
  // `note` says in a sentence what is to be seen; `body` is HTML.
  void add_section(std::string_view title, std::string_view note, std::string_view body);
  [[nodiscard]] std::string text() const;

 private:
  std::string title_, subtitle_, figures_, sections_;
};

}  // namespace waybill::cli
