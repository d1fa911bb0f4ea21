#include "api/endpoint.h"

#include <gtest/gtest.h>

namespace waybill::api {
namespace {

using http::Method;

std::string_view found(Method method, std::string_view path) {
  const FoundEndpoint found = find_endpoint(method, path);
  return found.endpoint == nullptr ? std::string_view() : found.endpoint->path;
}

TEST(Endpoints, EachIsFoundAtItsOwnPath) {
  for (const Endpoint& each : endpoints()) {
    std::string path(each.path);
    if (const std::size_t open = path.find('{'); open != std::string::npos)
      path.replace(open, path.find('}') - open + 1, "x");
    const FoundEndpoint found = find_endpoint(each.method, path);
    ASSERT_NE(found.endpoint, nullptr) << path;
    EXPECT_EQ(found.endpoint->path, each.path);
    EXPECT_EQ(found.endpoint->method, each.method);
  }
}

TEST(Endpoints, AnIdMayStandInTheMiddle) {
  EXPECT_EQ(found(Method::kPost, "/v1/jobs/7/cancel"), "/v1/jobs/{id}/cancel");
  EXPECT_EQ(found(Method::kGet, "/v1/jobs/7"), "/v1/jobs/{id}");
  EXPECT_EQ(found(Method::kPost, "/v1/queues/default/pause"), "/v1/queues/{name}/pause");
}

TEST(Endpoints, AnIdIsOnePartAndNotEmpty) {
  for (const std::string_view path : {"/v1/jobs/", "/v1/jobs/7/8", "/v1/jobs//cancel", "/v1/jobs/7/8/cancel",
                                      "/v1/jobs/7/cancel/", "/v1/jobs/7/nothing", "/v1/jobs/cance"})
    EXPECT_NE(found(Method::kPost, path), "/v1/jobs/{id}/cancel") << path;
  EXPECT_FALSE(find_endpoint(Method::kGet, "/v1/jobs/").path_known);
  EXPECT_FALSE(find_endpoint(Method::kGet, "/v1/jobs/7/8").path_known);
}

TEST(Endpoints, APathOfTheTableIsNeverAnId) {
  EXPECT_EQ(found(Method::kGet, "/v1/models"), "/v1/models");
  EXPECT_EQ(found(Method::kPost, "/v1/dead-letters/redrive"), "/v1/dead-letters/redrive");
}

TEST(Endpoints, AnotherMethodIsToldFromAnotherPath) {
  const FoundEndpoint found = find_endpoint(Method::kPut, "/v1/jobs/7");
  EXPECT_EQ(found.endpoint, nullptr);
  EXPECT_TRUE(found.path_known);
  EXPECT_EQ(allowed_methods("/v1/jobs/7"), "OPTIONS, GET, HEAD, DELETE");
  EXPECT_EQ(allowed_methods("/v1/jobs/7/cancel"), "OPTIONS, POST");
}

TEST(Endpoints, HeadIsGetWithoutABody) { EXPECT_EQ(found(Method::kHead, "/v1/jobs/7"), "/v1/jobs/{id}"); }

}  // namespace
}  // namespace waybill::api
