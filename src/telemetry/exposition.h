// Writes metrics in the formats that Prometheus reads.
// Text 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/
// OpenMetrics 1.0: https://prometheus.io/docs/specs/om/open_metrics_spec/
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "telemetry/metrics.h"

namespace waybill::telemetry {

class ExpositionWriter {
 public:
  explicit ExpositionWriter(Exposition exposition) : open_metrics_(exposition == Exposition::kOpenMetrics) {}

  void write(const Family<Counter>& family);
  void write(const Family<Gauge>& family);
  void write(const Family<Histogram>& family);
  [[nodiscard]] std::string finish() &&;

 private:
  using Values = std::span<const std::string>;
  void head(const MetricDescriptor& descriptor);
  // name{label="value",...}, with le="..." as the last label unless it is empty, and a blank.
  void name_and_labels(const MetricDescriptor& descriptor, std::string_view suffix, Values values,
                       std::string_view le = {});
  void number(double value);
  void bound(double value);
  void exemplar(const ExemplarSlot& slot);

  const bool open_metrics_;
  std::string out_;
  std::string le_;
};

}  // namespace waybill::telemetry
