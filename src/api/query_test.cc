#include "api/query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace waybill::api {
namespace {

using http::Method;
using testing::HasSubstr;

const Endpoint& at(Method method, std::string_view path) { return *find_endpoint(method, path).endpoint; }

Error error_of(std::string_view path, std::string_view query, Method method = Method::kGet) {
  const Status status = check_query(at(method, path), query);
  EXPECT_FALSE(status) << path << '?' << query;
  return status ? Error{} : status.error();
}

TEST(Query, WhatAnEndpointTakesIsTaken) {
  EXPECT_TRUE(check_query(at(Method::kGet, "/v1/requests"), "outcome=failed&route=a&since=1h&limit=5"));
  EXPECT_TRUE(check_query(at(Method::kGet, "/v1/requests"), ""));
  EXPECT_TRUE(check_query(at(Method::kGet, "/v1/requests"), "&limit=5&&"));
  EXPECT_TRUE(check_query(at(Method::kGet, "/v1/requests"), "%6cimit=5"));
  EXPECT_TRUE(check_query(at(Method::kHead, "/v1/requests"), "limit=5"));
}

TEST(Query, AnUnknownParameterIsNamedWithTheNearestOne) {
  const Error error = error_of("/v1/requests", "limit=5&outcom=failed");
  EXPECT_EQ(error.code, ErrorCode::kInvalidInput);
  EXPECT_EQ(error.field, "outcom");
  EXPECT_THAT(error.message, HasSubstr("\"outcom\" of GET /v1/requests; did you mean \"outcome\"?"));
  EXPECT_THAT(error.message, HasSubstr("It takes outcome, route, since, limit."));
}

TEST(Query, AnEndpointWithoutParametersSaysSo) {
  EXPECT_THAT(error_of("/v1/ledger", "limit=5").message,
              HasSubstr("\"limit\" of GET /v1/ledger. It takes none."));
  EXPECT_EQ(error_of("/v1/jobs/7/cancel", "force", Method::kPost).field, "force");
}

TEST(Query, AParameterIsGivenOnce) {
  const Error error = error_of("/v1/requests", "limit=5&route=a&limi%74=6");
  EXPECT_EQ(error.field, "limit");
  EXPECT_THAT(error.message, HasSubstr("more than once"));
}

TEST(Query, NamesAreComparedAsTheyStand) {
  EXPECT_EQ(error_of("/v1/requests", "Limit=5").field, "Limit");
  EXPECT_EQ(error_of("/v1/requests", "=5").field, "");
  EXPECT_EQ(error_of("/v1/requests", "limit+=5").field, "limit ");
  EXPECT_EQ(error_of("/v1/requests", std::string(10'000, 'x')).field.size(), 100U);
}

TEST(Query, MetadataHasNamesOfItsOwn) {
  EXPECT_TRUE(check_query(at(Method::kGet, "/v1/jobs"), "metadata.customer=7&metadata.limit=8"));
  EXPECT_EQ(error_of("/v1/jobs", "metadata.=7").field, "metadata.");
  EXPECT_EQ(error_of("/v1/jobs", "metadata=7").field, "metadata");
  EXPECT_THAT(error_of("/v1/jobs", "x=7").message, HasSubstr("limit, metadata.NAME."));
  EXPECT_EQ(error_of("/v1/jobs", "metadata.a=7&metadata.a=8").field, "metadata.a");
  EXPECT_EQ(error_of("/v1/requests", "metadata.a=7").field, "metadata.a");
}

// Clients and load balancers add parameters of their own.
TEST(Query, WhatOthersThanPeopleAskTakesAny) {
  for (const std::string_view path : {"/health", "/ready", "/metrics", "/docs", "/openapi.yaml"})
    EXPECT_TRUE(check_query(at(Method::kGet, path), "t=1&t=2")) << path;
  for (const std::string_view path : {"/route", "/v1/chat/completions", "/v1/completions", "/v1/embeddings"})
    EXPECT_TRUE(check_query(at(Method::kPost, path), "api-version=1")) << path;
}

TEST(Query, ALimitIsANumberFromOneToAThousand) {
  EXPECT_EQ(read_limit("", 20), 20U);
  EXPECT_EQ(read_limit("limit=1000", 20), 1000U);
  for (const std::string_view wrong :
       {"limit=0", "limit=1001", "limit=", "limit=-1", "limit=5x", "limit=+5"}) {
    const Result<std::size_t> limit = read_limit(wrong, 20);
    ASSERT_FALSE(limit) << wrong;
    EXPECT_EQ(limit.error().field, "limit");
  }
}

}  // namespace
}  // namespace waybill::api
