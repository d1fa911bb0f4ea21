#include "telemetry/telemetry.h"

#include <regex>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temporary_folder_test.h"
#include "telemetry/fake_collector_test.h"

namespace waybill::telemetry {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

class TelemetryTest : public testing::Test {
 protected:
  std::unique_ptr<Telemetry> start() {
    options_.log.file = folder_.path() / "log";
    auto telemetry = Telemetry::start(options_, clock_);
    EXPECT_TRUE(telemetry.has_value());
    return *std::move(telemetry);
  }
  std::string log() { return read_file(folder_.path() / "log").value_or(""); }

  TemporaryFolder folder_;
  SteadyClock clock_;
  Options options_{.version = "9.9"};
};

TEST_F(TelemetryTest, AClosedWaybillReachesMetricsLogFileAndCollector) {
  FakeCollector collector({FakeCollector::answer(200)});
  options_.file.path = folder_.path() / "waybills.jsonl";
  options_.otlp.endpoint = collector.url();
  options_.otlp.interval = milliseconds(1);
  const auto telemetry = start();
  EXPECT_EQ(telemetry->trace_sample_ratio(), 1);
  Waybill waybill = telemetry->waybills().open("/v1/route", clock_.now());
  const std::string id = to_string(waybill.id());
  waybill.trace(accept_trace({}, {}, telemetry->trace_sample_ratio()));
  waybill.close(Outcome::kCompleted, 200);
  EXPECT_EQ(collector.requests(1).size(), 1U);
  telemetry->stop(seconds(60));
  EXPECT_THAT(log(), HasSubstr(id));
  EXPECT_THAT(read_file(options_.file.path).value_or(""), HasSubstr(id));
  const std::string scrape = telemetry->registry().expose(Exposition::kOpenMetrics);
  EXPECT_THAT(
      scrape,
      HasSubstr(R"(waybill_requests_total{endpoint="/v1/route",route="",tier="",outcome="completed"} 1)"));
  EXPECT_THAT(scrape, HasSubstr(R"(waybill_ledger{state="completed"} 1)"));
  EXPECT_THAT(scrape, HasSubstr("waybill_ledger_imbalance 0"));
  EXPECT_THAT(scrape, HasSubstr("waybill_trace_spans_exported_total 1"));
  EXPECT_THAT(scrape, HasSubstr(R"(waybill_build_info{version="9.9",)"));
}

TEST_F(TelemetryTest, WithoutACollectorNewTracesAreNotSampled) {
  EXPECT_EQ(start()->trace_sample_ratio(), 0);
}

TEST_F(TelemetryTest, LossesAreToldInTheLog) {
  options_.file.path = "/dev/full";
  options_.check_interval = std::chrono::hours(1);
  const auto telemetry = start();
  telemetry->waybills().open("/", clock_.now()).close(Outcome::kCompleted, 200);
  telemetry->stop(seconds(60));
  EXPECT_THAT(log(), HasSubstr("waybills are missing in the waybill file"));
  EXPECT_THAT(log(), HasSubstr("No space left"));
}

TEST_F(TelemetryTest, StoppingADeadCollectorLeavesTimeForTheLog) {
  FakeCollector collector({"hang"});
  options_.otlp.endpoint = collector.url();
  options_.otlp.interval = milliseconds(1);
  const auto telemetry = start();
  Waybill waybill = telemetry->waybills().open("/", clock_.now());
  waybill.trace(accept_trace({}, {}, 1));
  waybill.close(Outcome::kFailed, 500);
  (void)collector.requests(1);
  telemetry->log().error("the last words");
  telemetry->stop(milliseconds(400));
  EXPECT_THAT(log(), HasSubstr("the last words"));
  EXPECT_THAT(log(), HasSubstr("trace spans dropped"));
}

TEST_F(TelemetryTest, WaybillsMayOutliveTheStop) {
  const auto telemetry = start();
  Waybill waybill = telemetry->waybills().open("/", clock_.now());
  telemetry->stop(seconds(60));
  waybill.close(Outcome::kCompleted, 200);
  EXPECT_EQ(telemetry->check_ledger().imbalance(), 0);
  EXPECT_EQ(telemetry->check_ledger().with(Outcome::kCompleted), 1U);
}

TEST_F(TelemetryTest, WhatCannotBeOpenedIsAnError) {
  options_.log.file = folder_.path();
  EXPECT_FALSE(Telemetry::start(options_, clock_));
  options_.log.file = folder_.path() / "log";
  options_.file.path = folder_.path();
  EXPECT_FALSE(Telemetry::start(options_, clock_));
  options_.file.path.clear();
  options_.otlp.endpoint = "nonsense";
  EXPECT_FALSE(Telemetry::start(options_, clock_));
}

// docs/metrics.md has one row for each metric: | `name` | kind | labels | help |
TEST(Documentation, MetricsPageAndProgramSayTheSame) {
  const auto page = read_file(WAYBILL_SOURCE_DIR "/docs/metrics.md");
  ASSERT_TRUE(page);
  std::set<std::string> expected;
  for (const MetricDescriptor& m : metric_catalog()) {
    std::string labels;
    for (const std::string_view label : m.labels)
      labels += (labels.empty() ? "`" : ", `") + std::string(label) + "`";
    expected.insert(fmt::format("| `{}` | {} | {} | {} |", m.name, to_string(m.kind), labels, m.help));
  }
  std::set<std::string> rows;
  const std::regex row("^\\| `(waybill|process)_[^\\n]*", std::regex::multiline);
  for (std::sregex_iterator i(page->begin(), page->end(), row), end; i != end; ++i) rows.insert(i->str());
  EXPECT_EQ(rows, expected);
}

}  // namespace
}  // namespace waybill::telemetry
