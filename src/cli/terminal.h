// What a person sees: colours, tables and progress, each only where there is a person. Colours are on when
// the stream is a terminal, NO_COLOR (no-color.org) is not set and TERM is not "dumb"; --color decides
// otherwise.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"

namespace waybill::cli {

enum class Stream : std::uint8_t { kOut, kErr };
enum class ColorChoice : std::uint8_t { kAuto, kAlways, kNever };

[[nodiscard]] bool is_terminal(Stream stream) noexcept;

// Columns of the terminal (or $COLUMNS); 100 when the stream is none.
[[nodiscard]] std::size_t terminal_width(Stream stream) noexcept;

// Call once, before threads start.
void set_color(ColorChoice choice) noexcept;
[[nodiscard]] bool has_color(Stream stream) noexcept;

enum class Style : std::uint8_t { kBold, kDim, kRed, kGreen, kYellow, kBlue, kCyan };

// The text in the style where the stream has colours, else the text.
[[nodiscard]] std::string paint(Style style, std::string_view text, Stream stream = Stream::kOut);

// Columns the text takes: UTF-8, wide characters count two, combining ones none, colours none.
[[nodiscard]] std::size_t display_width(std::string_view text) noexcept;

// Cut to `width` columns, with "…" at the end if something was cut; line breaks and controls become spaces.
[[nodiscard]] std::string fit_width(std::string_view text, std::size_t width);

// Breaks at spaces into lines of at most `width` columns; line breaks in the text are kept.
[[nodiscard]] std::vector<std::string> wrap(std::string_view text, std::size_t width);

// "12", "3.4 k", "5.6 M"; "12 B", "86.7 MB"; "1.2 µs", "35 ms", "2.1 s".
[[nodiscard]] std::string human_count(double count);
[[nodiscard]] std::string human_bytes(double bytes);
[[nodiscard]] std::string human_seconds(double seconds);
// A bar of eighths of blocks; `share` in [0, 1].
[[nodiscard]] std::string bar(double share, std::size_t width);

// Columns that line up. Cells may be painted.
class Table {
 public:
  enum class Align : std::uint8_t { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add_row(std::vector<std::string> cells);
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// A line on stderr that shows how far long work is. Appears after half a second (short work shows nothing),
// is redrawn ten times a second, and is gone when the object is. Thread-safe.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // For functions that report progress; the line must outlive them.
  [[nodiscard]] Progress reporter();
  void update(std::string_view what, std::size_t done, std::size_t total);
  // Removes the line, so that something else can be written. It comes back with the next update.
  void clear();

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  const bool enabled_;
  std::mutex mutex_;
  std::string what_;
  SteadyTime started_, drawn_;
  bool visible_ = false;
};

}  // namespace waybill::cli
