#include "base/json_writer.h"

#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "base/utf8.h"

namespace waybill {
namespace {

// ASCII that stands for itself.
constexpr bool is_plain(char c) noexcept { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; }

}  // namespace

void JsonWriter::separate() {
  if (comma_) out_ += ',';
  comma_ = true;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  out_ += bracket;
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  out_ += bracket;
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  string(name);
  out_ += ':';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::string(std::string_view text) {
  separate();
  out_ += '"';
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t start = i;
    while (i < text.size() && is_plain(text[i])) ++i;
    out_.append(text, start, i - start);
    if (i == text.size()) break;
    const char32_t c = next_code_point(text, i);
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += static_cast<char>(c);
    } else if (c == '\n') {
      out_ += "\\n";
    } else if (c == '\t') {
      out_ += "\\t";
    } else if (c < 0x20 || c == 0x7F) {
      fmt::format_to(std::back_inserter(out_), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      append_utf8(out_, c);
    }
  }
  out_ += '"';
  return *this;
}

JsonWriter& JsonWriter::boolean(bool value) {
  separate();
  out_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::integer(std::int64_t value) {
  separate();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::number(double value, int significant_digits) {
  if (!std::isfinite(value)) return null();
  separate();
  fmt::format_to(std::back_inserter(out_), "{:.{}g}", value, significant_digits);
  return *this;
}

JsonWriter& JsonWriter::null() {
  separate();
  out_ += "null";
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  out_ += json;
  return *this;
}

JsonWriter& JsonWriter::integers(std::span<const std::int32_t> values) {
  begin_array();
  for (const std::int32_t value : values) integer(value);
  return end_array();
}

JsonWriter& JsonWriter::floats(std::span<const float> values, int significant_digits) {
  begin_array();
  for (const float value : values) number(static_cast<double>(value), significant_digits);
  return end_array();
}

}  // namespace waybill
