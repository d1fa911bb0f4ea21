#include "telemetry/trace_context.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

namespace waybill::telemetry {
namespace {

constexpr std::size_t kVersion00Length = 55;  // 00-<32>-<16>-<2>
constexpr std::size_t kMaxMembers = 32;
constexpr std::size_t kMaxTracestate =
    8192;  // 32 members of the longest; far beyond the 512 that must be passed on
constexpr std::uint8_t kSampled = 1;

std::string_view trim(std::string_view text) noexcept {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_key_sign(char c) noexcept { return c == '_' || c == '-' || c == '*' || c == '/' || c == '@'; }

// Lower-case digits only, as the specification wants.
bool read_hex(std::string_view text, std::span<std::uint8_t> out) noexcept {
  if (text.size() != 2 * out.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!is_digit(c) && !(c >= 'a' && c <= 'f')) return false;
    const int value = is_digit(c) ? c - '0' : c - 'a' + 10;
    out[i / 2] = static_cast<std::uint8_t>(i % 2 == 0 ? value << 4 : out[i / 2] | value);
  }
  return true;
}

bool all_zero(std::span<const std::uint8_t> bytes) noexcept {
  return std::ranges::all_of(bytes, [](std::uint8_t b) { return b == 0; });
}

struct Traceparent {
  TraceId trace_id{};
  SpanId parent_id{};
  bool sampled = false;
};

std::optional<Traceparent> parse_traceparent(std::string_view text) noexcept {
  text = trim(text);
  if (text.size() < kVersion00Length) return std::nullopt;
  if (text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
  std::array<std::uint8_t, 1> version{}, flags{};
  Traceparent parent;
  if (!read_hex(text.substr(0, 2), version) || !read_hex(text.substr(3, 32), parent.trace_id) ||
      !read_hex(text.substr(36, 16), parent.parent_id) || !read_hex(text.substr(53, 2), flags))
    return std::nullopt;
  if (version[0] == 0xFF || all_zero(parent.trace_id) || all_zero(parent.parent_id)) return std::nullopt;
  // A later version may have more fields, of which we know only that a dash comes before them.
  if (text.size() > kVersion00Length && (version[0] == 0 || text[kVersion00Length] != '-'))
    return std::nullopt;
  parent.sampled = (flags[0] & kSampled) != 0;
  return parent;
}

bool is_key(std::string_view key) noexcept {
  if (key.empty() || key.size() > 256 || (!is_lower(key[0]) && !is_digit(key[0]))) return false;
  return std::ranges::all_of(key, [](char c) { return is_lower(c) || is_digit(c) || is_key_sign(c); });
}

bool is_value(std::string_view value) noexcept {
  if (value.empty() || value.size() > 256 || value.back() == ' ') return false;
  return std::ranges::all_of(value, [](char c) { return c >= 0x20 && c <= 0x7E && c != ',' && c != '='; });
}

// The members of all headers, joined; empty when any of it is malformed.
std::string join_tracestate(std::span<const std::string_view> headers) {
  std::string joined;
  std::vector<std::string_view> keys;
  for (std::string_view header : headers) {
    while (!header.empty()) {
      const std::size_t comma = std::min(header.find(','), header.size());
      const std::string_view member = trim(header.substr(0, comma));
      header.remove_prefix(std::min(comma + 1, header.size()));
      if (member.empty()) continue;
      const std::size_t equals = member.find('=');
      if (equals == std::string_view::npos) return {};
      const std::string_view key = member.substr(0, equals);
      if (!is_key(key) || !is_value(member.substr(equals + 1))) return {};
      if (std::ranges::find(keys, key) != keys.end() || keys.size() == kMaxMembers) return {};
      if (joined.size() + member.size() + 1 > kMaxTracestate) return {};
      keys.push_back(key);
      if (!joined.empty()) joined += ',';
      joined += member;
    }
  }
  return joined;
}

std::uint64_t random64() noexcept {
  thread_local std::mt19937_64 generator = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  return generator();
}

}  // namespace

TraceContext accept_trace(std::span<const std::string_view> traceparent,
                          std::span<const std::string_view> tracestate, double sample_ratio) {
  TraceContext context;
  context.span_id = new_span_id();
  const std::optional<Traceparent> parent =
      traceparent.size() == 1 ? parse_traceparent(traceparent[0]) : std::nullopt;
  if (!parent) {
    context.trace_id = new_trace_id();
    context.sampled = sample_by_ratio(context.trace_id, sample_ratio);
    return context;
  }
  context.trace_id = parent->trace_id;
  context.parent_id = parent->parent_id;
  context.sampled = parent->sampled;
  context.tracestate = join_tracestate(tracestate);
  return context;
}

std::string format_traceparent(const TraceContext& context) {
  std::string text = "00-";
  text += to_hex(context.trace_id);
  text += '-';
  text += to_hex(context.span_id);
  text += context.sampled ? "-01" : "-00";
  return text;
}

TraceId new_trace_id() noexcept {
  TraceId id{};
  while (all_zero(id)) {
    const std::array<std::uint64_t, 2> random = {random64(), random64()};
    std::memcpy(id.data(), random.data(), id.size());
  }
  return id;
}

SpanId new_span_id() noexcept {
  SpanId id{};
  while (all_zero(id)) {
    const std::uint64_t random = random64();
    std::memcpy(id.data(), &random, id.size());
  }
  return id;
}

bool sample_by_ratio(const TraceId& id, double ratio) noexcept {
  if (ratio >= 1) return true;
  if (!(ratio > 0)) return false;
  std::uint64_t value = 0;
  for (std::size_t i = 9; i < id.size(); ++i) value = value << 8 | id[i];
  return static_cast<double>(value) < ratio * 0x1p56;
}

std::string to_hex(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace waybill::telemetry
