#include "telemetry/metrics.h"

#include <array>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "telemetry/metrics_sink.h"
#include "telemetry/process_metrics.h"
#include "telemetry/program_metrics.h"

namespace waybill::telemetry {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::array<std::string_view, 2> kLabels = {"route", "outcome"};
constexpr std::array<std::string_view, 1> kOneLabel = {"name"};
constexpr std::array<double, 3> kBounds = {0.5, 1, 2.5};
constexpr auto kCatalog = std::to_array<MetricDescriptor>({
    {"test_requests_total", MetricKind::kCounter, "", "Requests \"so\" far\\.", kLabels, {}},
    {"test_wait_seconds", MetricKind::kHistogram, "seconds", "Waits.", {}, kBounds},
    {"test_load", MetricKind::kGauge, "", "Load.", {}, {}},
    {"test_named_total", MetricKind::kCounter, "", "Names.", kOneLabel, {}},
    {"test_cpu_seconds_total", MetricKind::kCounter, "seconds", "CPU.", {}, {}, 1e-6},
});

constexpr TraceId kTrace = {0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6,
                            0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36};

TEST(Exposition, PrometheusText) {
  Registry registry(kCatalog);
  registry.counters("test_requests_total").with({"coding", "completed"}).add(3);
  registry.gauges("test_load").with({}).set(0.1);
  Histogram& waits = registry.histograms("test_wait_seconds").with({});
  for (const double wait : {0.25, 0.5, 0.75, 10.0}) waits.observe(wait);
  registry.counters("test_cpu_seconds_total").with({}).set(1'250'000);
  EXPECT_EQ(registry.expose(Exposition::kPrometheusText),
            R"(# HELP test_requests_total Requests "so" far\\.
# TYPE test_requests_total counter
test_requests_total{route="coding",outcome="completed"} 3
# HELP test_wait_seconds Waits.
# TYPE test_wait_seconds histogram
test_wait_seconds_bucket{le="0.5"} 2
test_wait_seconds_bucket{le="1"} 3
test_wait_seconds_bucket{le="2.5"} 3
test_wait_seconds_bucket{le="+Inf"} 4
test_wait_seconds_sum 11.5
test_wait_seconds_count 4
# HELP test_load Load.
# TYPE test_load gauge
test_load 0.1
# HELP test_named_total Names.
# TYPE test_named_total counter
# HELP test_cpu_seconds_total CPU.
# TYPE test_cpu_seconds_total counter
test_cpu_seconds_total 1.25
)");
}

TEST(Exposition, OpenMetricsWithExemplars) {
  Registry registry(kCatalog);
  registry.counters("test_requests_total")
      .with({"coding", "completed"})
      .add(1, kTrace, 1'700'000'000'250'000);
  registry.histograms("test_wait_seconds").with({}).observe(0.75, kTrace, 1'700'000'000'250'000);
  const std::string text = registry.expose(Exposition::kOpenMetrics);
  EXPECT_THAT(text, testing::StartsWith(R"(# HELP test_requests Requests \"so\" far\\.
# TYPE test_requests counter
test_requests_total{route="coding",outcome="completed"} 1 # {trace_id="4bf92f3577b34da6a3ce929d0e0e4736"} 1 1700000000.250
# HELP test_wait_seconds Waits.
# TYPE test_wait_seconds histogram
# UNIT test_wait_seconds seconds
test_wait_seconds_bucket{le="0.5"} 0
test_wait_seconds_bucket{le="1.0"} 1 # {trace_id="4bf92f3577b34da6a3ce929d0e0e4736"} 0.75 1700000000.250
test_wait_seconds_bucket{le="2.5"} 1
test_wait_seconds_bucket{le="+Inf"} 1
)"));
  EXPECT_THAT(text, HasSubstr("# UNIT test_cpu_seconds seconds\ntest_cpu_seconds_total 0\n"));
  EXPECT_THAT(text, testing::EndsWith("# EOF\n"));
}

TEST(Exposition, LabelValuesCannotBreakALine) {
  Registry registry(kCatalog);
  registry.counters("test_named_total").with({"a\"b\\c\nd\xFF"}).add();
  EXPECT_THAT(registry.expose(Exposition::kPrometheusText),
              HasSubstr("{name=\"a\\\"b\\\\c\\nd\uFFFD\"} 1\n"));
}

TEST(Exposition, NumbersThatAreNone) {
  Registry registry(kCatalog);
  registry.gauges("test_load").with({}).set(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(registry.expose(Exposition::kPrometheusText), HasSubstr("test_load NaN\n"));
  registry.gauges("test_load").with({}).set(-std::numeric_limits<double>::infinity());
  EXPECT_THAT(registry.expose(Exposition::kPrometheusText), HasSubstr("test_load -Inf\n"));
}

TEST(Exposition, IsChosenByTheAcceptHeader) {
  EXPECT_EQ(choose_exposition("application/openmetrics-text;version=1.0.0,text/plain;q=0.5"),
            Exposition::kOpenMetrics);
  EXPECT_EQ(choose_exposition("text/plain"), Exposition::kPrometheusText);
  EXPECT_EQ(choose_exposition(""), Exposition::kPrometheusText);
}

TEST(Exemplars, OneASecondIsTaken) {
  ExemplarSlot slot;
  slot.offer(kTrace, 1, 5'000'000);
  slot.offer(kTrace, 2, 5'500'000);
  EXPECT_EQ(slot.read().value, 1);
  slot.offer(kTrace, 3, 6'000'000);
  EXPECT_EQ(slot.read().value, 3);
}

TEST(Family, TheSameLabelsAreTheSameSeries) {
  Registry registry(kCatalog);
  Family<Counter>& family = registry.counters("test_requests_total");
  Counter& a = family.with({"coding", "completed"});
  EXPECT_EQ(&a, &family.with({std::string("cod") + "ing", "completed"}));
  EXPECT_NE(&a, &family.with({"completed", "coding"}));
}

TEST(Family, ValuesBeyondTheBoundCountAsOther) {
  Registry registry(kCatalog);
  Family<Counter>& family = registry.counters("test_named_total");
  for (std::size_t i = 0; i < kMaxLabelValues + 50; ++i) family.with({fmt::format("n{}", i)}).add();
  EXPECT_EQ(family.with({"other"}).value(), 50U);
  EXPECT_EQ(family.with({"n5"}).value(), 1U);
  EXPECT_EQ(&family.with({"yet another"}), &family.with({"other"}));
}

TEST(Family, SeriesBeyondTheBoundCountAsOtherInAllLabels) {
  Registry registry(kCatalog);
  Family<Counter>& family = registry.counters("test_requests_total");
  for (std::size_t i = 0; i < kMaxLabelValues; ++i) {
    for (std::size_t j = 0; j < 20; ++j) family.with({fmt::format("r{}", i), fmt::format("o{}", j)}).add();
  }
  std::size_t series = 0;
  std::uint64_t sum = 0;
  family.for_each([&](auto, const Counter& counter) {
    ++series;
    sum += counter.value();
  });
  EXPECT_EQ(series, kMaxSeries);
  EXPECT_EQ(sum, kMaxLabelValues * 20);
  EXPECT_EQ(family.with({"other", "other"}).value(), kMaxLabelValues * 20 - (kMaxSeries - 1));
}

TEST(Family, ThreadsThatMeetLoseNothing) {
  Registry registry(kCatalog);
  Family<Counter>& family = registry.counters("test_named_total");
  Histogram& waits = registry.histograms("test_wait_seconds").with({});
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 5'000; ++i) {
          family.with({fmt::format("n{}", i % 50)}).add(1, kTrace, std::int64_t{i} * 1'000'000 + 1);
          waits.observe(1, kTrace, std::int64_t{i} * 1'000'000 + 1);
          if (i % 1000 == 0) (void)registry.expose(Exposition::kOpenMetrics);
        }
      });
    }
  }
  for (int i = 0; i < 50; ++i) EXPECT_EQ(family.with({fmt::format("n{}", i)}).value(), 400U);
  EXPECT_EQ(waits.count(), 20'000U);
  EXPECT_EQ(waits.sum(), 20'000.0);
}

TEST(Registry, HooksRunBeforeEachScrapeWhileTheyLive) {
  Registry registry(kCatalog);
  int runs = 0;
  {
    Registry::Hook hook = registry.on_scrape([&] { registry.gauges("test_load").with({}).set(++runs); });
    const Registry::Hook moved = std::move(hook);
    EXPECT_THAT(registry.expose(Exposition::kPrometheusText), HasSubstr("test_load 1\n"));
  }
  EXPECT_THAT(registry.expose(Exposition::kPrometheusText), HasSubstr("test_load 1\n"));
  EXPECT_EQ(runs, 1);
}

TEST(Registry, ANameThatIsNotDeclaredIsABug) {
  Registry registry(kCatalog);
  EXPECT_DEATH((void)registry.counters("test_unknown_total"), "check failed");
  EXPECT_DEATH((void)registry.counters("test_load"), "check failed");
}

TEST(Catalog, FollowsTheConventions) {
  for (const MetricDescriptor& m : metric_catalog()) {
    SCOPED_TRACE(m.name);
    EXPECT_TRUE(m.name.starts_with("waybill_") || m.name.starts_with("process_"));
    const bool total = m.name.ends_with("_total");
    EXPECT_TRUE(total || m.kind != MetricKind::kCounter);
    const std::string_view base = total ? m.name.substr(0, m.name.size() - 6) : m.name;
    EXPECT_TRUE(m.unit.empty() || base.ends_with(m.unit)) << "OpenMetrics: the name ends in the unit";
    EXPECT_EQ(m.buckets.empty(), m.kind != MetricKind::kHistogram);
    EXPECT_TRUE(std::ranges::is_sorted(m.buckets, std::ranges::less_equal{}));
    EXPECT_TRUE(m.help.ends_with("."));
  }
}

Record ended(Outcome outcome) {
  Record record;
  record.endpoint = "/route";
  record.open = false;
  record.outcome = outcome;
  record.duration_us = 2000;
  record.stages[static_cast<std::size_t>(Stage::kQueue)] = {.start_us = 0, .length_us = 1500};
  return record;
}

TEST(MetricsSink, ARequestMovesItsSeries) {
  Registry registry;
  ProgramMetrics metrics(registry);
  MetricsSink sink(metrics);
  Record record = ended(Outcome::kCompleted);
  record.route = "coding";
  record.tier = "static";
  record.decided = true;
  record.degraded = 3;
  sink.closed(record);
  EXPECT_EQ(metrics.requests.with({"/route", "coding", "static", "completed"}).value(), 1U);
  EXPECT_EQ(metrics.request_seconds.with({"/route"}).sum(), 0.002);
  EXPECT_EQ(metrics.stage_seconds.with({"queue"}).count(), 1U);
  EXPECT_EQ(metrics.stage_seconds.with({"encode"}).count(), 0U);
  EXPECT_EQ(metrics.degraded_decisions.value(), 3U);
  EXPECT_EQ(metrics.timeouts.with({"queue"}).value(), 0U);
}

TEST(MetricsSink, AnExpiredRequestCountsInTheStageOfItsErrorOrTheLastItReached) {
  Registry registry;
  ProgramMetrics metrics(registry);
  MetricsSink sink(metrics);
  Record record = ended(Outcome::kExpired);
  sink.closed(record);
  EXPECT_EQ(metrics.timeouts.with({"queue"}).value(), 1U);
  record.error_code = "deadline_exceeded";
  record.error_stage = Stage::kEncode;
  sink.closed(record);
  EXPECT_EQ(metrics.timeouts.with({"encode"}).value(), 1U);
}

TEST(MetricsSink, OnlyTracesThatAreExportedAreExamples) {
  Registry registry;
  ProgramMetrics metrics(registry);
  MetricsSink sink(metrics);
  Record record = ended(Outcome::kCompleted);
  record.trace_id = kTrace;
  record.started_us = 1'700'000'000'000'000;
  sink.closed(record);
  EXPECT_THAT(registry.expose(Exposition::kOpenMetrics), Not(HasSubstr("trace_id")));
  record.sampled = true;
  sink.closed(record);
  EXPECT_THAT(registry.expose(Exposition::kOpenMetrics), HasSubstr("4bf92f3577b34da6a3ce929d0e0e4736"));
}

TEST(ProcessMetrics, SayWhatLinuxSays) {
  Registry registry;
  const Registry::Hook hook = add_process_metrics(registry);
  (void)registry.expose(Exposition::kPrometheusText);
  EXPECT_GT(registry.gauges("process_resident_memory_bytes").with({}).value(), 1e6);
  EXPECT_GE(registry.gauges("process_threads").with({}).value(), 1);
  EXPECT_GE(registry.gauges("process_open_fds").with({}).value(), 3);
  EXPECT_GT(registry.gauges("process_max_fds").with({}).value(), 3);
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const double started = registry.gauges("process_start_time_seconds").with({}).value();
  EXPECT_GT(started, now - 24 * 3600);
  EXPECT_LT(started, now + 1);
}

}  // namespace
}  // namespace waybill::telemetry
