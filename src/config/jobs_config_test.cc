#include "config/jobs_config.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"

namespace waybill::config {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// The smallest file that has jobs, and those of `settings`.
std::string with_jobs(std::string_view settings) {
  return "default_model: m\nroutes: []\nmodels: [{name: m, targets: [{provider: p}]}]\n"
         "providers: [{name: p, base_url: \"http://127.0.0.1:1/v1\"}]\nstore: {path: jobs.db}\n" +
         std::string(settings);
}
std::string with_queue(std::string_view settings) {
  return with_jobs("jobs: {queues: [{name: q, " + std::string(settings) + "}]}\n");
}

Config parsed(std::string_view yaml) {
  auto config = parse(yaml);
  EXPECT_TRUE(config) << config.error().text() << '\n' << yaml;
  return config ? *std::move(config) : Config{};
}

std::string errors_of(std::string_view yaml) {
  const auto config = parse(yaml);
  EXPECT_FALSE(config) << yaml;
  return config ? std::string() : config.error().text();
}

std::vector<std::string> warnings_of(std::string_view yaml) {
  std::vector<std::string> texts;
  for (const Diagnostic& warning : parsed(yaml).warnings) texts.push_back(warning.text());
  return texts;
}

TEST(JobsConfig, WithoutAPathThereAreNoJobs) {
  const Config config = parsed("routes: []\n");
  EXPECT_TRUE(config.store.path.empty());
  EXPECT_THAT(warnings_of(with_jobs("")), IsEmpty());
  EXPECT_THAT(
      warnings_of("default_model: m\nroutes: [{name: a, utterances: [b]}]\njobs: {promote_after: 1s}\n"),
      ElementsAre(HasSubstr("waybill.yaml:3: jobs has no effect without store.path")));
}

TEST(JobsConfig, ThePathIsTakenFromTheFolderOfTheFile) {
  const auto config =
      parse(with_jobs(""), {.name = "waybill.yaml", .folder = "/etc/waybill", .read_file = {}});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->store.path, "/etc/waybill/jobs.db");
}

TEST(JobsConfig, TheQueueDefaultIsThereWhetherItIsNamedOrNot) {
  const Config unnamed = parsed(with_queue("concurrency: 2"));
  ASSERT_EQ(unnamed.jobs.queues.size(), 2U);
  EXPECT_EQ(unnamed.jobs.queues[0].name, "default");
  EXPECT_EQ(unnamed.jobs.queues[0].concurrency, 16U);
  EXPECT_EQ(unnamed.jobs.queues[1].name, "q");
  EXPECT_EQ(unnamed.jobs.queues[1].concurrency, 2U);
  const Config named = parsed(with_jobs("jobs: {queues: [{name: default, concurrency: 3}]}"));
  ASSERT_EQ(named.jobs.queues.size(), 1U);
  EXPECT_EQ(named.jobs.queues[0].concurrency, 3U);
}

TEST(JobsConfig, WhatIsWrittenOutIsReadBack) {
  const Config config = parsed(with_queue(
      "workers: server, lane: interactive, requests_per_minute: 60, max_depth: 10, max_receives: 5, "
      "visibility: "
      "5m, timeout: 1h, backoff: {first: 250ms, most: 1d}, in_doubt: hold, require_idempotency_key: true, "
      "retention: {dead: 0s, failed: 36h}"));
  const std::string yaml = to_yaml(config, Secrets::kShown);
  const Config again = parsed(yaml);
  EXPECT_EQ(to_yaml(again, Secrets::kShown), yaml);
  ASSERT_EQ(again.jobs.queues.size(), 2U);
  const JobQueue& queue = again.jobs.queues[1];
  EXPECT_EQ(queue.name, "q");
  EXPECT_EQ(queue.workers, QueueWorkers::kServer);
  EXPECT_EQ(queue.lane, JobLane::kInteractive);
  EXPECT_EQ(queue.requests_per_minute, 60U);
  EXPECT_EQ(queue.max_depth, 10U);
  EXPECT_EQ(queue.max_receives, 5U);
  EXPECT_EQ(queue.visibility, minutes(5));
  EXPECT_EQ(queue.timeout, hours(1));
  EXPECT_EQ(queue.backoff.first, milliseconds(250));
  EXPECT_EQ(queue.backoff.most, hours(24));
  EXPECT_EQ(queue.in_doubt, InDoubt::kHold);
  EXPECT_TRUE(queue.require_idempotency_key);
  EXPECT_EQ(queue.retention.completed, hours(24 * 7));
  EXPECT_EQ(queue.retention.failed, hours(36));
  EXPECT_EQ(queue.retention.dead, Duration::zero());
}

TEST(JobsConfig, AQueueHasANameOfItsOwnThatAPathOfAUrlTakes) {
  const auto named = [](const std::string& name) {
    return with_jobs("jobs: {queues: [{name: " + name + "}]}");
  };
  for (const char* name : {"\"a b\"", "a/b", "\"..\"", "-a", "\"ä\"", "\"a?\""})
    EXPECT_THAT(errors_of(named(name)), HasSubstr("which is not a name for a queue; write 1 to 64 letters"))
        << name;
  EXPECT_THAT(errors_of(named(std::string(65, 'a'))), HasSubstr("which is not a name for a queue"));
  EXPECT_THAT(errors_of(with_jobs("jobs: {queues: [{workers: external}]}")),
              HasSubstr("name is missing in jobs.queues[0]"));
  EXPECT_THAT(
      errors_of(with_jobs("jobs:\n  queues:\n    - name: a\n    - name: a\n")),
      HasSubstr("waybill.yaml:9: the queue \"a\" is there twice (first at waybill.yaml:8); rename one"));
  parsed(named("A-b_c.9"));
}

TEST(JobsConfig, HoldsItsBounds) {
  const auto error = [](std::string_view settings) { return errors_of(with_queue(settings)); };
  EXPECT_THAT(error("concurrency: 0"), HasSubstr("jobs.queues[0].concurrency is 0, which must be"));
  EXPECT_THAT(error("max_receives: 0"), HasSubstr("jobs.queues[0].max_receives is 0"));
  EXPECT_THAT(error("visibility: 0s"), HasSubstr("must be a duration from 1s to 1d"));
  EXPECT_THAT(error("timeout: 8d"), HasSubstr("must be a duration from 1ms to 7d"));
  EXPECT_THAT(
      error("backoff: {first: 10m}"),
      HasSubstr("waybill.yaml:6: jobs.queues[0].backoff.first is longer than jobs.queues[0].backoff.most"));
  EXPECT_THAT(error("in_doubt: ask"), HasSubstr("jobs.queues[0].in_doubt is \"ask\""));
  EXPECT_THAT(error("max_attempts: 3"), HasSubstr("did you mean \"max_receives\"?"));
  EXPECT_THAT(errors_of(with_jobs("jobs: {max_jobs_per_call: 0}")), HasSubstr("jobs.max_jobs_per_call is 0"));
  EXPECT_THAT(errors_of(with_jobs("jobs: {idempotency_ttl: 0s}")), HasSubstr("must be a duration from 1s"));
}

TEST(JobsConfig, TellsWhatExternalWorkersDoNotHeed) {
  EXPECT_THAT(
      warnings_of(with_queue("workers: external, lane: batch, timeout: 1m, visibility: 2m")),
      ElementsAre(HasSubstr("jobs.queues[0].lane has no effect, as the workers of the queue are external"),
                  HasSubstr("jobs.queues[0].timeout has no effect")));
}

TEST(JobsConfig, AScheduleIsAListOfDurations) {
  const auto schedule = [](std::string_view text) {
    return with_jobs("jobs: {webhooks: {schedule: " + std::string(text) + "}}");
  };
  EXPECT_EQ(parsed(with_jobs("")).jobs.webhooks.schedule.size(), 9U);
  EXPECT_THAT(parsed(schedule("[250ms, 1 s, 2d]")).jobs.webhooks.schedule,
              ElementsAre(milliseconds(250), seconds(1), hours(48)));
  EXPECT_THAT(parsed(schedule("5s")).jobs.webhooks.schedule, ElementsAre(seconds(5)));
  EXPECT_THAT(
      errors_of(schedule("[1s, 5]")),
      HasSubstr("jobs.webhooks.schedule is \"5\", which must be a duration from 1ms to 30d: a whole number "
                "with ms, s, m, h or d (5s)"));
  EXPECT_THAT(errors_of(schedule("[]")), HasSubstr("is an empty list"));
  EXPECT_THAT(errors_of(schedule("{a: 1s}")), HasSubstr("must be text or a list of texts"));
}

TEST(JobsConfig, WebhooksNameTheirSecretsAndTheirHosts) {
  const auto webhooks = [](std::string_view text) {
    return with_jobs("jobs: {webhooks: {" + std::string(text) + "}}");
  };
  const Config config =
      parsed(webhooks("secrets: [{env: NEW}, {file: old.key}], allow_hosts: ['*.example.com', a]"));
  ASSERT_EQ(config.jobs.webhooks.secrets.size(), 2U);
  EXPECT_EQ(config.jobs.webhooks.secrets[0].env, "NEW");
  EXPECT_EQ(config.jobs.webhooks.secrets[1].file, "old.key");
  EXPECT_THAT(config.jobs.webhooks.allow_hosts, ElementsAre("*.example.com", "a"));
  EXPECT_THAT(errors_of(webhooks("secrets: [{env: \"whsec_c2VjcmV0+\"}]")),
              AllOf(HasSubstr("jobs.webhooks.secrets[0].env is not the name of an environment variable"),
                    HasSubstr("(WEBHOOK_SECRET)"), Not(HasSubstr("c2VjcmV0"))));
  EXPECT_THAT(errors_of(webhooks("secrets: [{env: A, file: b}]")),
              HasSubstr("jobs.webhooks.secrets[0] must have one of env and file, not both"));
  EXPECT_THAT(errors_of(webhooks("secrets: [{env: A}, {env: A}]")),
              HasSubstr("jobs.webhooks.secrets[1] is the same key as jobs.webhooks.secrets[0]"));
  for (const char* host : {"'https://a'", "'a:443'", "'*'", "'a.*'", "a/b"})
    EXPECT_THAT(errors_of(webhooks("allow_hosts: [" + std::string(host) + "]")), HasSubstr("is not a host"))
        << host;
}

}  // namespace
}  // namespace waybill::config
