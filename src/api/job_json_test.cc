#include "api/job_json.h"

#include <gtest/gtest.h>

#include "api/job_attributes.h"

namespace waybill::api {
namespace {

std::string written(const store::Job& job, const store::JobResult* result = nullptr) {
  std::string text;
  JsonWriter json(text);
  write_job(json, job, result);
  return text;
}

TEST(JobJson, WhatIsNotThereIsNull) {
  store::Job job;
  job.queue = "default";
  job.created = 1764504000'250000;
  const std::string text = written(job);
  for (const std::string_view part : {R"("status":"queued")", R"("created_at":1764504000.250000)",
                                      R"("run_after":null)", R"("metadata":null)", R"("webhook":null)",
                                      R"("result_url":null)", R"("error":null)", R"("attempts":[])"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

TEST(JobJson, AnAnswerThatIsJsonStaysJson) {
  store::Job job;
  job.state = store::State::kCompleted;
  const store::JobResult json = {.status = 200, .content_type = {}, .body = R"({"n":1.50})", .facts = "{}"};
  EXPECT_NE(written(job, &json).find(R"("result":{"status_code":200,"body":{"n":1.50},"facts":{}})"),
            std::string::npos);
  const store::JobResult text = {.status = 200, .content_type = {}, .body = "data: \"x\"\n\n", .facts = {}};
  EXPECT_NE(written(job, &text).find(R"("body":"data: \"x\"\n\n","facts":null)"), std::string::npos);
  const store::JobResult bytes = {.status = 200, .content_type = {}, .body = "\"\xff\"", .facts = {}};
  EXPECT_NE(written(job, &bytes).find("\xEF\xBF\xBD"), std::string::npos) << "what is no UTF-8 is made it";
}

TEST(JobJson, ADeadLetterSaysWhy) {
  store::Job job;
  job.state = store::State::kDead;
  job.errors.push_back({.receive = 3, .started = 1, .ended = 2, .code = "upstream_timeout", .message = "m"});
  EXPECT_NE(written(job).find(R"("error":{"code":"upstream_timeout","message":"m"})"), std::string::npos);
}

TEST(JobJson, AttributesComeBackAsTheyWere) {
  JobAttributes attributes;
  EXPECT_EQ(write_attributes(attributes), "");
  attributes.idempotency_key = "a \"b\" \\ é";
  attributes.webhook = "https://example.com/x?y=z";
  attributes.traceparent = "00-1-2-01";
  const JobAttributes read = read_attributes(write_attributes(attributes));
  EXPECT_EQ(read.idempotency_key, attributes.idempotency_key);
  EXPECT_EQ(read.webhook, attributes.webhook);
  EXPECT_EQ(read.traceparent, attributes.traceparent);
  EXPECT_EQ(read.session, "");
  EXPECT_EQ(read_attributes("").webhook, "");
  EXPECT_EQ(read_attributes(R"({"webhook": 7, "x": [1]})").webhook, "");
}

}  // namespace
}  // namespace waybill::api
