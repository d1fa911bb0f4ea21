#include "upstream/failure.h"

#include <gtest/gtest.h>

#include "upstream/openai/openai.h"
#include "upstream/retry_budget.h"

namespace waybill::upstream {
namespace {

using namespace std::chrono_literals;

http::ResponseHead head(unsigned status, std::vector<http::Header> headers = {}) {
  http::ResponseHead made;
  made.status = status;
  made.headers = std::move(headers);
  return made;
}

TEST(RetryAfter, ReadsWhatProvidersSend) {
  EXPECT_EQ(retry_after(head(429, {{"Retry-After", "30"}})), 30s);
  EXPECT_EQ(retry_after(head(429, {{"Retry-After", "1.5"}})), 1500ms);
  EXPECT_EQ(retry_after(head(429, {{"Retry-After", "30"}, {"retry-after-ms", "250"}})), 250ms);
  EXPECT_EQ(retry_after(head(503, {{"Retry-After", "Thu, 01 Jan 1970 00:00:00 GMT"}})), 0s);
  EXPECT_EQ(retry_after(head(503, {{"Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"}})), 24h);
  EXPECT_EQ(
      retry_after(head(429, {{"x-ratelimit-remaining-tokens", "0"}, {"x-ratelimit-reset-tokens", "6m0s"}})),
      360s);
  EXPECT_EQ(
      retry_after(head(429, {{"x-ratelimit-remaining-tokens", "9"}, {"x-ratelimit-reset-tokens", "6m0s"}})),
      std::nullopt);
  EXPECT_EQ(retry_after(head(429, {{"x-ratelimit-remaining-tokens", "0"}})), std::nullopt);
  EXPECT_EQ(retry_after(head(429)), std::nullopt);
  for (const char* nonsense : {"soon", "-1", "nan", "inf", "1 s", ""})
    EXPECT_EQ(retry_after(head(429, {{"Retry-After", nonsense}})), std::nullopt) << nonsense;
  EXPECT_EQ(retry_after(head(429, {{"Retry-After", "1e30"}})), 24h);
}

TEST(RetryAfter, ReadsResets) {
  EXPECT_EQ(parse_reset("20ms"), 20ms);
  EXPECT_EQ(parse_reset("1s"), 1s);
  EXPECT_EQ(parse_reset("1h2m3.5s"), 3723500ms);
  EXPECT_EQ(parse_reset("7"), 7s);
  EXPECT_EQ(parse_reset("7x"), std::nullopt);
  for (const char* nonsense : {"", "s", "1m x", "-1s", "nan", "1s ", "2026-01-01T00:00:00Z"})
    EXPECT_EQ(parse_reset(nonsense), std::nullopt) << nonsense;
}

TEST(Failure, TellsTheClientsFaultFromTheProviders) {
  const auto dialect = make_openai_dialect();
  for (const unsigned status : {400U, 413U, 422U})
    EXPECT_FALSE(failure_of(head(status), "{}", *dialect).may_retry()) << status;
  for (const unsigned status : {401U, 403U, 404U, 408U, 409U, 429U, 500U, 503U, 529U})
    EXPECT_TRUE(failure_of(head(status), "{}", *dialect).may_retry()) << status;
  EXPECT_FALSE(failure_of(head(429), "{}", *dialect).is_ill());
  EXPECT_TRUE(failure_of(head(500), "{}", *dialect).is_ill());
}

TEST(Failure, PassesTheProvidersWordsOn) {
  const auto dialect = make_openai_dialect();
  const std::string body =
      R"({"error":{"message":"max_tokens is too large","type":"invalid_request_error","param":"max_tokens","code":null}})";
  const Failure failure = failure_of(head(400), body, *dialect);
  EXPECT_EQ(failure.body, body);
  EXPECT_EQ(failure.message, "answered 400: max_tokens is too large");
  const Failure html = failure_of(head(502), "<html>Bad\nGateway</html>", *dialect);
  EXPECT_NE(html.body.find(R"("error")"), std::string::npos);
  EXPECT_EQ(html.message.find('\n'), std::string::npos);
}

TEST(RetryBudget, AllowsAShareOfTheLatestCalls) {
  const config::Gateway limits{.retry_budget = 0.2, .retry_floor = 3};
  RetryBudget budget;
  TimePoint now{1h};
  for (int i = 0; i < 100; ++i) budget.count_call(now);
  int taken = 0;
  while (budget.take_retry(now, limits)) ++taken;
  EXPECT_EQ(taken, 23);
  now += 10s;
  taken = 0;
  while (budget.take_retry(now, limits)) ++taken;
  EXPECT_EQ(taken, 3);
}

}  // namespace
}  // namespace waybill::upstream
