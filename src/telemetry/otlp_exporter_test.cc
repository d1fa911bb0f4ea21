#include "telemetry/otlp_exporter.h"

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "telemetry/fake_collector_test.h"
#include "telemetry/http_post.h"
#include "telemetry/otlp_json.h"
#include "telemetry/records_test.h"

namespace waybill::telemetry {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::SizeIs;

std::unique_ptr<OtlpExporter> make(OtlpOptions options) {
  options.interval = milliseconds(1);
  options.first_pause = milliseconds(1);
  auto exporter = OtlpExporter::make(options);
  EXPECT_TRUE(exporter.has_value());
  return *std::move(exporter);
}

TEST(OtlpExporter, SendsASpanForTheRequestAndOneForEachStage) {
  FakeCollector collector({FakeCollector::answer(200)});
  const auto exporter =
      make({.endpoint = collector.url(), .headers = {{"x-key", "secret"}}, .service_version = "1.2"});
  Record record = test_record();
  record.tracestate = std::make_shared<const std::string>("vendor=1,other=2");
  exporter->closed(record);
  const auto requests = collector.requests(1);
  exporter->stop(seconds(60));
  ASSERT_THAT(requests, SizeIs(1));
  EXPECT_EQ(requests[0].target(), "/v1/traces");
  EXPECT_EQ(requests[0]["content-type"], "application/json");
  EXPECT_EQ(requests[0]["x-key"], "secret");
  const boost::json::value body = boost::json::parse(requests[0].body());
  EXPECT_EQ(body.at_pointer("/resourceSpans/0/resource/attributes/1/value/stringValue"), "1.2");
  const auto& spans = body.at_pointer("/resourceSpans/0/scopeSpans/0/spans").as_array();
  ASSERT_THAT(spans, SizeIs(3));
  EXPECT_EQ(spans[0].at("traceId"), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(spans[0].at("spanId"), "0102030405060708");
  EXPECT_EQ(spans[0].at("parentSpanId"), "00f067aa0ba902b7");
  for (const auto& span : spans) EXPECT_EQ(span.at("traceState"), "vendor=1,other=2");
  EXPECT_EQ(spans[0].at("startTimeUnixNano"), "1767225600123456000");
  EXPECT_EQ(spans[0].at("endTimeUnixNano"), "1767225600124956000");
  EXPECT_FALSE(spans[0].as_object().contains("status"));
  EXPECT_EQ(spans[1].at("name"), "queue");
  EXPECT_EQ(spans[1].at("parentSpanId"), "0102030405060708");
  EXPECT_EQ(spans[2].at("startTimeUnixNano"), "1767225600123776000");
  EXPECT_EQ(spans[2].at("endTimeUnixNano"), "1767225600124776000");
  EXPECT_EQ(exporter->exported(), 3U);
  EXPECT_EQ(exporter->dropped(), 0U);
}

TEST(OtlpExporter, WhatTheServerDidWrongIsAnErrorAndARefusalIsNot) {
  const auto status_of = [](Record record) {
    const boost::json::value body = boost::json::parse(to_otlp_json({record}, "waybill", "1"));
    const auto& span = body.at_pointer("/resourceSpans/0/scopeSpans/0/spans/0").as_object();
    return span.contains("status") ? span.at("status").at("code").as_int64() : 0;
  };
  Record record = test_record(Outcome::kExpired);
  EXPECT_EQ(status_of(record), 2);
  record.outcome = Outcome::kRejected;
  record.status = 503;
  EXPECT_EQ(status_of(record), 2);
  record.status = 400;
  EXPECT_EQ(status_of(record), 0);
}

TEST(OtlpExporter, ATraceThatIsNotSampledIsNotSent) {
  FakeCollector collector({FakeCollector::answer(200)});
  const auto exporter = make({.endpoint = collector.url()});
  Record record = test_record();
  record.sampled = false;
  exporter->closed(record);
  exporter->stop(seconds(60));
  EXPECT_EQ(exporter->exported() + exporter->dropped(), 0U);
}

TEST(OtlpExporter, TriesAgainWhileTheCollectorIsBusyOrAway) {
  FakeCollector collector({FakeCollector::answer(503), FakeCollector::answer(429), "", "nonsense\r\n\r\n",
                           FakeCollector::answer(200)});
  const auto exporter = make({.endpoint = collector.url() + "/custom", .tries = 5});
  exporter->closed(test_record());
  const auto requests = collector.requests(5);
  exporter->stop(seconds(60));
  ASSERT_THAT(requests, SizeIs(5));
  EXPECT_EQ(requests[4].target(), "/custom");
  EXPECT_EQ(requests[4].body(), requests[0].body());
  EXPECT_EQ(exporter->exported(), 3U);
}

TEST(OtlpExporter, GivesUpAfterItsTriesAndGoesOnWithTheNext) {
  FakeCollector collector(
      {FakeCollector::answer(503), FakeCollector::answer(503), FakeCollector::answer(200)});
  const auto exporter = make({.endpoint = collector.url(), .batch = 1, .tries = 2});
  exporter->closed(test_record());
  exporter->closed(test_record());
  (void)collector.requests(3);
  exporter->stop(seconds(60));
  EXPECT_EQ(exporter->dropped(), 3U);
  EXPECT_EQ(exporter->exported(), 3U);
  EXPECT_THAT(exporter->last_error(), HasSubstr("503"));
}

TEST(OtlpExporter, ARefusalIsFinal) {
  FakeCollector collector({FakeCollector::answer(400), FakeCollector::answer(200)});
  const auto exporter = make({.endpoint = collector.url(), .tries = 5});
  exporter->closed(test_record());
  EXPECT_THAT(collector.requests(1), SizeIs(1));
  exporter->stop(seconds(60));
  EXPECT_EQ(exporter->dropped(), 3U);
  EXPECT_THAT(collector.requests(1), SizeIs(1));
}

TEST(OtlpExporter, SpansThatTheCollectorRejectsAreCounted) {
  FakeCollector collector(
      {FakeCollector::answer(200, R"({"partialSuccess":{"rejectedSpans":"2","errorMessage":"no"}})")});
  const auto exporter = make({.endpoint = collector.url()});
  exporter->closed(test_record());
  (void)collector.requests(1);
  exporter->stop(seconds(60));
  EXPECT_EQ(exporter->exported(), 1U);
  EXPECT_EQ(exporter->dropped(), 2U);
}

TEST(OtlpExporter, ACollectorThatHangsHoldsNobodyUp) {
  FakeCollector collector({"hang"});
  const auto exporter =
      make({.endpoint = collector.url(), .queue = 10, .batch = 1, .timeout = seconds(600), .tries = 1});
  exporter->closed(test_record());
  (void)collector.requests(1);
  for (int i = 0; i < 100; ++i) exporter->closed(test_record());
  EXPECT_EQ(exporter->dropped(), 90 * 3U);
  exporter->stop(milliseconds(50));
  EXPECT_EQ(exporter->exported(), 0U);
}

TEST(OtlpExporter, AnAnswerThatDoesNotComeIsGivenUp) {
  FakeCollector collector({"hang", FakeCollector::answer(200)});
  const auto exporter = make({.endpoint = collector.url(), .timeout = milliseconds(50), .tries = 2});
  exporter->closed(test_record());
  (void)collector.requests(2);
  exporter->stop(seconds(60));
  EXPECT_EQ(exporter->exported(), 3U);
}

TEST(OtlpExporter, ADeadEndpointIsSaid) {
  std::string url;
  {
    const FakeCollector gone({FakeCollector::answer(200)});
    url = gone.url();
  }
  const auto exporter = make({.endpoint = url, .tries = 1});
  exporter->closed(test_record());
  exporter->stop(seconds(60));
  EXPECT_EQ(exporter->dropped(), 3U);
  EXPECT_THAT(exporter->last_error(), HasSubstr("refused"));
}

TEST(OtlpExporter, WhatIsQueuedWhenTimeRunsOutIsCounted) {
  FakeCollector collector({"hang"});
  const auto exporter = make({.endpoint = collector.url(), .batch = 1, .tries = 1});
  exporter->closed(test_record());
  (void)collector.requests(1);
  for (int i = 0; i < 5; ++i) exporter->closed(test_record());
  exporter->stop(milliseconds(20));
  EXPECT_GE(exporter->dropped(), 5 * 3U);
}

TEST(OtlpExporter, AnAddressThatCannotBeUsedIsAnErrorWithItsSetting) {
  for (const char* url :
       {"https://x", "x:4318", "http://", "http://a:b", "http://u:p@h", "http://[::1", "http://a b"}) {
    const auto exporter = OtlpExporter::make({.endpoint = url});
    ASSERT_FALSE(exporter) << url;
    EXPECT_EQ(exporter.error().field, "telemetry.traces.endpoint");
  }
}

TEST(HttpTarget, IsTakenApart) {
  const auto target = parse_http_target("http://[::1]:4318/v1/traces?x=1");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->host, "::1");
  EXPECT_EQ(target->port, "4318");
  EXPECT_EQ(target->path, "/v1/traces?x=1");
  EXPECT_EQ(parse_http_target("http://collector")->port, "80");
  EXPECT_EQ(parse_http_target("http://collector")->path, "/");
}

TEST(OtlpJson, ReadsHowManyWereRejected) {
  EXPECT_EQ(rejected_spans(R"({"partialSuccess":{"rejectedSpans":3}})"), 3U);
  EXPECT_EQ(rejected_spans(R"({"partialSuccess":{"rejectedSpans":-3}})"), 0U);
  for (const char* text : {"", "{}", "[]", "{\"partialSuccess\":1}", "{\"partialSuccess\":{}}", "junk"})
    EXPECT_EQ(rejected_spans(text), 0U) << text;
}

}  // namespace
}  // namespace waybill::telemetry
