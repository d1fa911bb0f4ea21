#include "api/job_fields.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "base/utf8.h"
#include "upstream/json_scanner.h"

namespace waybill::api {
namespace {

using upstream::JsonKind;
using upstream::JsonScanner;
using upstream::JsonString;

constexpr std::size_t kMostPairs = 16, kMostKey = 64, kMostValue = 512;
constexpr double kMicroseconds = 1e6;
constexpr double kLatest = 4102444800;  // 2100-01-01; the store's times hold far more

std::unexpected<Error> wrong(std::string_view field, std::string_view wanted) {
  return fail(ErrorCode::kInvalidInput, fmt::format("\"{}\" must be {}.", field, wanted), std::string(field));
}

std::optional<double> number(std::string_view raw) {
  double value = 0;
  if (JsonScanner(raw).peek() != JsonKind::kNumber) return std::nullopt;
  const auto [end, error] = std::from_chars(raw.data(), raw.data() + raw.size(), value);
  if (error != std::errc() || end != raw.data() + raw.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::size_t characters(std::string_view text) noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

// Takes `count` digits from the beginning of the text.
std::optional<int> take_digits(std::string_view& text, std::size_t count) noexcept {
  if (text.size() < count) return std::nullopt;
  int value = 0;
  for (const char c : text.substr(0, count)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool take(std::string_view& text, char c) noexcept {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

// "Z" or "+01:00", in seconds.
std::optional<int> take_zone(std::string_view text) noexcept {
  if (text == "Z" || text == "z") return 0;
  const bool west = take(text, '-');
  if (!west && !take(text, '+')) return std::nullopt;
  const auto hours = take_digits(text, 2);
  const bool colon = take(text, ':');
  const auto minutes = take_digits(text, 2);
  if (!hours || !colon || !minutes || !text.empty() || *hours > 23 || *minutes > 59) return std::nullopt;
  const int offset = *hours * 3600 + *minutes * 60;
  return west ? -offset : offset;
}

}  // namespace

Result<std::string> read_text(std::string_view field, std::string_view raw, std::size_t max_bytes) {
  JsonString text;
  if (!JsonScanner(raw).read(text)) return wrong(field, "a string");
  std::string value;
  text.append_to(value);
  if (value.empty() || value.size() > max_bytes || !is_valid_utf8(value))
    return wrong(field, fmt::format("a text of 1 to {} bytes", max_bytes));
  return value;
}

Result<std::int64_t> read_whole(std::string_view field, std::string_view raw, std::int64_t min,
                                std::int64_t max) {
  const auto value = upstream::json_whole_number(raw);
  if (!value || static_cast<std::int64_t>(*value) < min || static_cast<std::int64_t>(*value) > max)
    return wrong(field, fmt::format("a whole number from {} to {}", min, max));
  return static_cast<std::int64_t>(*value);
}

Result<std::int64_t> read_seconds(std::string_view field, std::string_view raw, double max) {
  const std::optional<double> value = number(raw);
  if (!value || *value <= 0 || *value > max)
    return wrong(field, fmt::format("a number of seconds above 0, at most {:.0f}", max));
  return std::max<std::int64_t>(1, std::llround(*value * kMicroseconds));
}

Result<store::Time> read_time(std::string_view field, std::string_view raw) {
  if (const std::optional<double> value = number(raw); value && *value > 0 && *value < kLatest)
    return std::llround(*value * kMicroseconds);
  JsonString text;
  if (JsonScanner(raw).read(text) && !text.escaped) {
    if (const auto time = parse_rfc3339(text.raw)) return *time;
  }
  return wrong(field, "a time: seconds since 1970, or as in \"2026-11-30T12:00:00Z\"");
}

Status check_metadata(std::string_view field, std::string_view raw) {
  JsonScanner json(raw);
  if (!json.enter_object()) return wrong(field, "an object of strings");
  std::vector<std::string> names;
  std::string value;
  for (JsonString key, text; json.next_member(key);) {
    std::string& name = names.emplace_back();
    key.append_to(name);
    const std::string shown = fmt::format("{}.{}", field, to_valid_utf8(name.substr(0, kMostKey)));
    if (!json.read(text)) return wrong(shown, "a string");
    value.clear();
    text.append_to(value);
    if (!is_valid_utf8(name) || !is_valid_utf8(value)) return wrong(shown, "UTF-8");
    if (name.empty() || characters(name) > kMostKey)
      return wrong(field, fmt::format("an object whose keys have 1 to {} characters", kMostKey));
    if (characters(value) > kMostValue)
      return wrong(shown, fmt::format("at most {} characters long", kMostValue));
    if (std::ranges::count(names, name) > 1) return wrong(shown, "there once");
    if (names.size() > kMostPairs) return wrong(field, fmt::format("at most {} pairs", kMostPairs));
  }
  return {};
}

std::optional<store::Time> parse_rfc3339(std::string_view text) noexcept {
  const auto year = take_digits(text, 4);
  const bool dash = take(text, '-');
  const auto month = take_digits(text, 2);
  const bool dash2 = take(text, '-');
  const auto day = take_digits(text, 2);
  const bool t = take(text, 'T') || take(text, 't') || take(text, ' ');
  const auto hour = take_digits(text, 2);
  const bool colon = take(text, ':');
  const auto minute = take_digits(text, 2);
  const bool colon2 = take(text, ':');
  const auto second = take_digits(text, 2);
  if (!year || !dash || !month || !dash2 || !day || !t || !hour || !colon || !minute || !colon2 || !second)
    return std::nullopt;
  std::int64_t fraction = 0;
  if (take(text, '.')) {
    std::int64_t unit = 100'000;
    bool any = false;
    for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; text.remove_prefix(1), unit /= 10) {
      fraction += (text.front() - '0') * unit;
      any = true;
    }
    if (!any) return std::nullopt;
  }
  const std::optional<int> zone = take_zone(text);
  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!zone || !date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const std::int64_t seconds = days * 86'400 + *hour * 3'600 + *minute * 60 + *second - *zone;
  return seconds * 1'000'000 + fraction;
}

}  // namespace waybill::api
