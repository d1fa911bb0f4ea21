#include "telemetry/exposition.h"

#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "base/utf8.h"

namespace waybill::telemetry {
namespace {

constexpr std::string_view kTotal = "_total";

std::string_view without_total(std::string_view name) {
  return name.ends_with(kTotal) ? name.substr(0, name.size() - kTotal.size()) : name;
}

void append_escaped(std::string& out, std::string_view text, bool escape_quotes) {
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && escape_quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
}

void append_number(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
  } else {
    fmt::format_to(std::back_inserter(out), "{}", value);  // the shortest text that reads back the same
  }
}

}  // namespace

// The two formats differ in what a counter is called before its samples, in the unit, and in escaping of the
// help.
void ExpositionWriter::head(const MetricDescriptor& descriptor) {
  const std::string_view name = open_metrics_ && descriptor.kind == MetricKind::kCounter
                                    ? without_total(descriptor.name)
                                    : descriptor.name;
  fmt::format_to(std::back_inserter(out_), "# HELP {} ", name);
  append_escaped(out_, descriptor.help, open_metrics_);
  fmt::format_to(std::back_inserter(out_), "\n# TYPE {} {}\n", name, to_string(descriptor.kind));
  if (open_metrics_ && !descriptor.unit.empty())
    fmt::format_to(std::back_inserter(out_), "# UNIT {} {}\n", name, descriptor.unit);
}

void ExpositionWriter::name_and_labels(const MetricDescriptor& descriptor, std::string_view suffix,
                                       Values values, std::string_view le) {
  out_ += descriptor.name;
  out_ += suffix;
  char separator = '{';
  for (std::size_t i = 0; i < values.size(); ++i) {
    out_ += separator;
    out_ += descriptor.labels[i];
    out_ += "=\"";
    append_escaped(out_, to_valid_utf8(values[i]), true);
    out_ += '"';
    separator = ',';
  }
  if (!le.empty()) {
    fmt::format_to(std::back_inserter(out_), "{}le=\"{}\"", separator, le);
    separator = ',';
  }
  if (separator == ',') out_ += '}';
  out_ += ' ';
}

void ExpositionWriter::number(double value) { append_number(out_, value); }

// OpenMetrics wants bounds in one canonical form, in which whole numbers have ".0".
void ExpositionWriter::bound(double value) {
  le_.clear();
  append_number(le_, value);
  if (open_metrics_ && le_.find_first_of(".e") == std::string::npos) le_ += ".0";
}

void ExpositionWriter::exemplar(const ExemplarSlot& slot) {
  if (!open_metrics_) return;
  const ExemplarSlot::Exemplar exemplar = slot.read();
  if (exemplar.time_us == 0) return;
  fmt::format_to(std::back_inserter(out_), " # {{trace_id=\"{}\"}} ", to_hex(exemplar.trace_id));
  number(exemplar.value);
  fmt::format_to(std::back_inserter(out_), " {}.{:03}", exemplar.time_us / 1'000'000,
                 exemplar.time_us / 1000 % 1000);
}

void ExpositionWriter::write(const Family<Counter>& family) {
  head(family.descriptor());
  family.for_each([&](Values values, const Counter& counter) {
    name_and_labels(family.descriptor(), "", values);
    number(static_cast<double>(counter.value()) * family.descriptor().scale);
    exemplar(counter.exemplar());
    out_ += '\n';
  });
}

void ExpositionWriter::write(const Family<Gauge>& family) {
  head(family.descriptor());
  family.for_each([&](Values values, const Gauge& gauge) {
    name_and_labels(family.descriptor(), "", values);
    number(gauge.value());
    out_ += '\n';
  });
}

void ExpositionWriter::write(const Family<Histogram>& family) {
  head(family.descriptor());
  const MetricDescriptor& descriptor = family.descriptor();
  family.for_each([&](Values values, const Histogram& histogram) {
    std::uint64_t cumulative = 0;
    for (std::size_t i = 0; i <= histogram.bounds().size(); ++i) {
      cumulative += histogram.bucket(i);
      bound(i < histogram.bounds().size() ? histogram.bounds()[i] : INFINITY);
      if (i == histogram.bounds().size()) le_ = "+Inf";
      name_and_labels(descriptor, "_bucket", values, le_);
      fmt::format_to(std::back_inserter(out_), "{}", cumulative);
      exemplar(histogram.exemplar(i));
      out_ += '\n';
    }
    name_and_labels(descriptor, "_sum", values);
    number(histogram.sum());
    out_ += '\n';
    name_and_labels(descriptor, "_count", values);
    fmt::format_to(std::back_inserter(out_), "{}\n", cumulative);
  });
}

std::string ExpositionWriter::finish() && {
  if (open_metrics_) out_ += "# EOF\n";
  return std::move(out_);
}

std::string_view content_type(Exposition exposition) noexcept {
  return exposition == Exposition::kOpenMetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                                : "text/plain; version=0.0.4; charset=utf-8";
}

Exposition choose_exposition(std::string_view accept) noexcept {
  return accept.find("application/openmetrics-text") != std::string_view::npos ? Exposition::kOpenMetrics
                                                                               : Exposition::kPrometheusText;
}

}  // namespace waybill::telemetry
