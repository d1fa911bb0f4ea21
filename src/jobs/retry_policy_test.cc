#include "jobs/retry_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace waybill::jobs {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::SizeIs;

constexpr store::Time kNow = 1'800'000'000'000'000;

Performed answer(unsigned status, bool called = true, std::string body = {}) {
  Performed performed;
  performed.status = status;
  performed.called = called;
  performed.body = std::move(body);
  return performed;
}

TEST(RetryPolicy, TellsAnswersApart) {
  for (const unsigned status : {200U, 201U, 299U}) EXPECT_EQ(classify(answer(status)), Answered::kCompleted);
  for (const unsigned status : {400U, 401U, 403U, 404U, 409U, 413U, 422U, 301U})
    EXPECT_EQ(classify(answer(status)), Answered::kFailed) << status;
  for (const unsigned status : {0U, 408U, 425U, 429U, 500U, 502U, 503U, 504U, 529U})
    EXPECT_EQ(classify(answer(status)), Answered::kAgain) << status;
  EXPECT_EQ(classify(answer(429, false)), Answered::kNotCalled);
  EXPECT_EQ(classify(answer(503, false)), Answered::kNotCalled);
  // Not called, and yet an attempt: else it would be tried for ever.
  EXPECT_EQ(classify(answer(504, false)), Answered::kAgain);
  EXPECT_EQ(classify(answer(400, false)), Answered::kFailed);
}

TEST(RetryPolicy, BacksOffUpToABoundThatDoubles) {
  const config::JobBackoff backoff{.first = 1s, .most = 5s};
  EXPECT_EQ(backoff_of(backoff, 1, 0), 0s);
  EXPECT_EQ(backoff_of(backoff, 1, 0.5), 500ms);
  EXPECT_EQ(backoff_of(backoff, 2, 0.5), 1s);
  EXPECT_EQ(backoff_of(backoff, 3, 0.5), 2s);
  EXPECT_EQ(backoff_of(backoff, 4, 0.5), 2500ms);  // of the bound
  EXPECT_EQ(backoff_of(backoff, 4'000'000'000, 0.5), 2500ms);
}

TEST(RetryPolicy, FinishesWhatAskingAgainWouldNotChange) {
  const config::JobQueue queue;
  Verdict verdict = judge(answer(200), queue, 1, 0, kNow, 0.5);
  EXPECT_EQ(verdict.what, Verdict::What::kFinish);
  EXPECT_EQ(verdict.state, store::State::kCompleted);
  verdict = judge(answer(400), queue, 1, 0, kNow, 0.5);
  EXPECT_EQ(verdict.what, Verdict::What::kFinish);
  EXPECT_EQ(verdict.state, store::State::kFailed);
}

TEST(RetryPolicy, WaitsAsLongAsTheAnswerAsks) {
  const config::JobQueue queue;  // backoff: 1s, doubled
  Performed performed = answer(429);
  EXPECT_EQ(judge(performed, queue, 2, 0, kNow, 0.5).at, kNow + 1'000'000);
  performed.retry_after = 30s;
  const Verdict verdict = judge(performed, queue, 2, 0, kNow, 0.5);
  EXPECT_EQ(verdict.what, Verdict::What::kFail);
  EXPECT_EQ(verdict.at, kNow + 30'000'000);
  performed.retry_after = 100ms;  // shorter than the backoff
  EXPECT_EQ(judge(performed, queue, 2, 0, kNow, 0.5).at, kNow + 1'000'000);
  performed.retry_after = 24h * 300;
  EXPECT_EQ(judge(performed, queue, 1, 0, kNow, 0.5).at, kNow + 86'400'000'000);
}

TEST(RetryPolicy, GivesBackWhatNobodyWasCalledFor) {
  const config::JobQueue queue;
  Performed performed = answer(503, false);
  Verdict verdict = judge(performed, queue, 3, 0, kNow, 0.5);
  EXPECT_EQ(verdict.what, Verdict::What::kRelease);
  EXPECT_EQ(verdict.at, kNow + 500'000);  // by the queue's releases, not by the job's receives
  EXPECT_EQ(judge(performed, queue, 3, 3, kNow, 0.5).at, kNow + 4'000'000);
  performed.retry_after = 10s;
  EXPECT_EQ(judge(performed, queue, 3, 0, kNow, 0.5).at, kNow + 10'000'000);
}

TEST(RetryPolicy, AnErrorKeepsItsCodeAndItsSentence) {
  store::AttemptError error = error_of(
      answer(503, true, R"({"error":{"message":"no","type":"server_error","code":"upstream_failed"}})"),
      kNow);
  EXPECT_EQ(error.code, "upstream_failed");
  EXPECT_EQ(error.message, "no");
  EXPECT_EQ(error.status, 503U);
  EXPECT_EQ(error.ended, kNow);
  EXPECT_FALSE(error.in_doubt);
  error =
      error_of(answer(500, true, R"({"error":{"message":"no","type":"server_error","code":null}})"), kNow);
  EXPECT_EQ(error.code, "server_error");
  EXPECT_EQ(error_of(answer(404, true, R"({"error":"model not found"})"), kNow).message, "model not found");
  for (const char* body : {"", "<html>", "[1]", "{\"error\":7}", "{\"error\":{\"code\":7}}", "{}"}) {
    error = error_of(answer(502, true, body), kNow);
    EXPECT_EQ(error.code, "http_502") << body;
    EXPECT_EQ(error.message, "the call was answered 502") << body;
  }
  EXPECT_EQ(error_of(answer(0), kNow).code, "no_answer");
  error = error_of(answer(500, true, R"({"error":{"message":")" + std::string(5000, 'x') + "\"}}"), kNow);
  EXPECT_THAT(error.message, AllOf(SizeIs(503), EndsWith("x...")));
}

TEST(RetryPolicy, TheEndOfTheServerLosesNothing) {
  config::JobQueue queue;
  EXPECT_EQ(judge_interrupted(queue, false, kNow).what, Verdict::What::kRelease);
  EXPECT_EQ(judge_interrupted(queue, false, kNow).at, store::kNever);
  const Verdict again = judge_interrupted(queue, true, kNow);
  EXPECT_EQ(again.what, Verdict::What::kFail);
  EXPECT_EQ(again.at, kNow);
  EXPECT_EQ(again.error.code, "shutting_down");
  EXPECT_TRUE(again.error.in_doubt);
  // Whoever opens the store next finds it in doubt, and holds it.
  queue.in_doubt = config::InDoubt::kHold;
  EXPECT_EQ(judge_interrupted(queue, true, kNow).what, Verdict::What::kLeave);
  EXPECT_EQ(judge_interrupted(queue, false, kNow).what, Verdict::What::kRelease);
}

}  // namespace
}  // namespace waybill::jobs
