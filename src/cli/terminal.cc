#include "cli/terminal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/utf8.h"

namespace waybill::cli {
namespace {

constexpr std::size_t kDefaultWidth = 100;
ColorChoice color_choice = ColorChoice::kAuto;

int descriptor(Stream stream) { return stream == Stream::kOut ? STDOUT_FILENO : STDERR_FILENO; }

struct Range {
  char32_t first, last;
};

// Unicode 15 East Asian Width W and F, joined to blocks; good enough to line up columns.
constexpr std::array<Range, 11> kWide = {{{0x1100, 0x115F},
                                          {0x2E80, 0x303E},
                                          {0x3041, 0xA4CF},
                                          {0xA960, 0xA97F},
                                          {0xAC00, 0xD7A3},
                                          {0xF900, 0xFAFF},
                                          {0xFE30, 0xFE6F},
                                          {0xFF00, 0xFF60},
                                          {0xFFE0, 0xFFE6},
                                          {0x1F300, 0x1FAFF},
                                          {0x20000, 0x3FFFD}}};
// The common blocks of combining and zero-width characters.
constexpr std::array<Range, 8> kNarrow = {{{0x300, 0x36F},
                                           {0x591, 0x5BD},
                                           {0x64B, 0x65F},
                                           {0x1AB0, 0x1AFF},
                                           {0x200B, 0x200F},
                                           {0x20D0, 0x20FF},
                                           {0xFE00, 0xFE0F},
                                           {0xFE20, 0xFE2F}}};

template <std::size_t N>
bool in_any(const std::array<Range, N>& ranges, char32_t c) {
  return std::ranges::any_of(ranges, [c](const Range& r) { return c >= r.first && c <= r.last; });
}

std::size_t columns_of(char32_t c) {
  if (c < 0x20 || (c >= 0x7F && c < 0xA0) || in_any(kNarrow, c)) return 0;
  return in_any(kWide, c) ? 2 : 1;
}

// Moves past an ANSI colour sequence (ESC [ ... m) at `position`, if there is one.
bool skip_color(std::string_view text, std::size_t& position) {
  if (!text.substr(position).starts_with("\x1B[")) return false;
  const std::size_t end = text.find('m', position);
  if (end == std::string_view::npos) return false;
  position = end + 1;
  return true;
}

}  // namespace

bool is_terminal(Stream stream) noexcept { return ::isatty(descriptor(stream)) == 1; }

std::size_t terminal_width(Stream stream) noexcept {
  if (!is_terminal(stream)) return kDefaultWidth;
  winsize size = {};
  if (::ioctl(descriptor(stream), TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) return size.ws_col;
  std::size_t columns = 0;
  if (const char* text = std::getenv("COLUMNS"); text != nullptr) {
    std::from_chars(text, text + std::strlen(text), columns);
  }
  return columns >= 20 ? columns : kDefaultWidth;
}

void set_color(ColorChoice choice) noexcept { color_choice = choice; }

bool has_color(Stream stream) noexcept {
  if (color_choice != ColorChoice::kAuto) return color_choice == ColorChoice::kAlways;
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* term = std::getenv("TERM");
  return is_terminal(stream) && term != nullptr && std::strcmp(term, "dumb") != 0;
}

std::string paint(Style style, std::string_view text, Stream stream) {
  constexpr std::array<std::string_view, 7> kCodes = {"1", "2", "31", "32", "33", "34", "36"};
  if (!has_color(stream) || text.empty()) return std::string(text);
  return fmt::format("\x1B[{}m{}\x1B[0m", kCodes[static_cast<std::size_t>(style)], text);
}

std::size_t display_width(std::string_view text) noexcept {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (!skip_color(text, i)) width += columns_of(next_code_point(text, i));
  }
  return width;
}

std::string fit_width(std::string_view text, std::size_t width) {
  std::string out;
  std::size_t used = 0;
  std::size_t cut_at = 0;  // where "…" would go
  for (std::size_t i = 0; i < text.size();) {
    char32_t c = next_code_point(text, i);
    if (c < 0x20 || (c >= 0x7F && c < 0xA0)) c = ' ';
    used += columns_of(c);
    if (used > width) {
      out.resize(cut_at);
      return width == 0 ? out : out + "…";
    }
    append_utf8(out, c);
    if (used < width) cut_at = out.size();
  }
  return out;
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  std::string line;
  std::size_t line_width = 0;
  const auto finish = [&] {
    lines.push_back(std::exchange(line, {}));
    line_width = 0;
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    const std::string_view word = text.substr(0, end);
    const std::size_t word_width = display_width(word);
    if (line_width > 0 && line_width + 1 + word_width > width) finish();
    if (!word.empty()) {
      if (line_width > 0) line += ' ';
      line_width += word_width + (line_width > 0 ? 1 : 0);
      line += word;
    }
    if (end < text.size() && text[end] == '\n') finish();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (!line.empty() || lines.empty()) finish();
  return lines;
}

std::string human_count(double count) {
  if (count < 10'000) return fmt::format("{:.0f}", count);
  if (count < 999.5e3) return fmt::format("{:.3g} k", count / 1e3);
  return fmt::format("{:.3g} M", count / 1e6);
}

std::string human_bytes(double bytes) {
  constexpr std::array<std::string_view, 4> kUnits = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{:.0f} B", bytes);
  std::size_t unit = 0;
  for (bytes /= 1000; bytes >= 999.5 && unit + 1 < kUnits.size(); ++unit) bytes /= 1000;
  return fmt::format("{:.{}f} {}", bytes, bytes < 99.95 ? 1 : 0, kUnits[unit]);
}

std::string human_seconds(double seconds) {
  if (seconds < 999.5e-9) return fmt::format("{:.3g} ns", seconds * 1e9);
  if (seconds < 999.5e-6) return fmt::format("{:.3g} µs", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 60) return fmt::format("{:.3g} s", seconds);
  const auto whole = static_cast<long long>(std::llround(seconds));
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string bar(double share, std::size_t width) {
  constexpr std::array<std::string_view, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  share = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0.0;
  const auto eighths = static_cast<std::size_t>(std::lround(share * 8 * static_cast<double>(width)));
  std::string out;
  for (std::size_t i = 0; i < eighths / 8; ++i) out += "█";
  return out.append(kEighths[eighths % 8]);
}

void Table::add_row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(display_width(column.title));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string out;
  const auto add_line = [&](const auto& cell_at) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string cell = cell_at(i);
      const std::string padding(widths[i] - display_width(cell), ' ');
      if (i > 0) line += "  ";
      line += columns_[i].align == Align::kLeft ? cell + padding : padding + cell;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  };
  const bool has_titles = std::ranges::any_of(columns_, [](const Column& c) { return !c.title.empty(); });
  if (has_titles) add_line([&](std::size_t i) { return paint(Style::kBold, columns_[i].title); });
  for (const auto& row : rows_) add_line([&](std::size_t i) { return row[i]; });
  return out;
}

ProgressLine::ProgressLine()
    : enabled_(is_terminal(Stream::kErr)), started_(std::chrono::steady_clock::now()) {}

ProgressLine::~ProgressLine() { clear(); }

Progress ProgressLine::reporter() {
  return [this](std::string_view what, std::size_t done, std::size_t total) { update(what, done, total); };
}

void ProgressLine::update(std::string_view what, std::size_t done, std::size_t total) {
  using namespace std::chrono_literals;
  if (!enabled_) return;
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (what != what_) {
    what_ = what;
    started_ = now;
  }
  if (now - started_ < 500ms || now - drawn_ < 100ms) return;
  drawn_ = now;
  visible_ = true;
  const double share = total == 0 ? 0 : static_cast<double>(done) / static_cast<double>(total);
  const double elapsed = std::chrono::duration<double>(now - started_).count();
  const std::string left = share > 0.02 ? human_seconds(elapsed / share - elapsed) + " left" : "";
  constexpr std::size_t kBarWidth = 24;
  const std::string filled = bar(share, kBarWidth);
  if (total == 0) {
    fmt::print(stderr, "\r\x1B[K{} {}", what_, human_count(static_cast<double>(done)));
    std::fflush(stderr);
    return;
  }
  const std::string line =
      fmt::format("{} {}{} {:3.0f} % {}", what_, paint(Style::kCyan, filled, Stream::kErr),
                  std::string(kBarWidth - display_width(filled), ' '), share * 100, left);
  fmt::print(stderr, "\r\x1B[K{}", line);
  std::fflush(stderr);
}

void ProgressLine::clear() {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(visible_, false)) return;
  fmt::print(stderr, "\r\x1B[K");
  std::fflush(stderr);
}

}  // namespace waybill::cli
