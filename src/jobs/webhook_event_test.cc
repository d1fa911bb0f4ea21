#include "jobs/webhook_event.h"

#include <algorithm>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace waybill::jobs {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

store::Job job() {
  store::Job made;
  made.id = *parse_uuid("01890a5d-ac96-774b-bcce-b302099a8057");
  made.state = store::State::kCompleted;
  made.finished = 1'700'000'000'000'042;
  made.result = 7;
  return made;
}
const WebhookContents kContents = {.job = R"({"id":"x"})",
                                   .traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                                   .tracestate = {},
                                   .correlation_id = "order-7"};

TEST(WebhookEvent, IsACloudEventInStructuredJson) {
  const boost::json::object event = boost::json::parse(write_webhook_event(job(), kContents)).as_object();
  const auto text = [&event](const char* name) { return std::string(event.at(name).as_string()); };
  EXPECT_EQ(text("specversion"), "1.0");
  EXPECT_EQ(text("id"), "msg_01890a5d-ac96-774b-bcce-b302099a8057_7");
  EXPECT_EQ(text("type"), "ai.waybill.job.completed");
  EXPECT_EQ(text("source"), "/v1/jobs");
  EXPECT_EQ(text("subject"), "01890a5d-ac96-774b-bcce-b302099a8057");
  EXPECT_EQ(text("time"), "2023-11-14T22:13:20.000042Z");
  EXPECT_EQ(text("datacontenttype"), "application/json");
  EXPECT_EQ(text("traceparent"), kContents.traceparent);
  EXPECT_EQ(text("correlationid"), "order-7");
  EXPECT_FALSE(event.contains("tracestate"));
  EXPECT_EQ(event.at("data").at("id").as_string(), "x");
  // Names of attributes are lower-case letters and digits.
  for (const auto& [name, value] : event) {
    EXPECT_TRUE(std::ranges::all_of(name, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    })) << name;
  }
}

TEST(WebhookEvent, AJobThatEndsAgainIsAnotherEvent) {
  store::Job again = job();
  again.result = 8;
  again.state = store::State::kDead;
  EXPECT_NE(webhook_id(job()), webhook_id(again));
  EXPECT_EQ(webhook_type(again.state), "ai.waybill.job.dead");
}

TEST(WebhookEvent, ItsRequestIsSignedAndTraced) {
  const std::vector<WebhookSecret> secrets = {*WebhookSecret::parse("whsec_bmV3")};
  const WebhookUrl url = *parse_webhook_url("https://[2606:4700::1111]:8443/hook?a=b");
  const std::string head = write_webhook_head(url, job(), kContents, secrets, 1700000000, "{}");
  EXPECT_THAT(head, HasSubstr("POST /hook?a=b HTTP/1.1\r\nHost: [2606:4700::1111]:8443\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nContent-Length: 2\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nwebhook-id: msg_01890a5d-ac96-774b-bcce-b302099a8057_7\r\n"));
  EXPECT_THAT(
      head,
      HasSubstr("\r\nwebhook-signature: " + secrets[0].sign(webhook_id(job()), 1700000000, "{}") + "\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\ntraceparent: " + kContents.traceparent + "\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nx-correlation-id: order-7\r\n"));
  EXPECT_THAT(head, EndsWith("\r\n\r\n"));
}

TEST(WebhookEvent, NoHeaderIsSmuggledIn) {
  WebhookContents contents = kContents;
  contents.correlation_id = "a\r\nX-Evil: 1";
  const std::string head = write_webhook_head(*parse_webhook_url("https://h/"), job(), contents, {}, 0, "{}");
  EXPECT_THAT(head, Not(HasSubstr("Evil")));
}

}  // namespace
}  // namespace waybill::jobs
