// Every metric of the program, declared in this one place. docs/metrics.md lists them; a test holds both
// together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace waybill::telemetry {

enum class MetricKind : std::uint8_t { kCounter, kGauge, kHistogram };

[[nodiscard]] std::string_view to_string(MetricKind kind) noexcept;  // "counter", ...

struct MetricDescriptor {
  std::string_view name;  // as in the Prometheus text format: counters end in _total
  MetricKind kind = MetricKind::kCounter;
  std::string_view unit;  // "seconds", "bytes", ...; the name ends in it. Empty: a plain number
  std::string_view help;  // one sentence
  std::span<const std::string_view> labels;
  std::span<const double> buckets;  // upper bounds of a histogram, growing, without infinity
  double scale = 1;                 // what one count of a counter is worth in the unit
};

[[nodiscard]] std::span<const MetricDescriptor> metric_catalog() noexcept;

// Of one label of one metric; further values are counted as "other". And of the series of one metric.
inline constexpr std::size_t kMaxLabelValues = 128;
inline constexpr std::size_t kMaxSeries = 2048;

}  // namespace waybill::telemetry
