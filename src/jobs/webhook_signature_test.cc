#include "jobs/webhook_signature.h"

#include <string>
#include <vector>

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "base/file.h"

namespace waybill::jobs {
namespace {

// One case of tests/data/standard_webhooks.json.
void check(const boost::json::object& object) {
  SCOPED_TRACE(std::string(object.at("name").as_string()));
  const bool valid = object.at("valid").as_bool();
  const Result<WebhookSecret> secret = WebhookSecret::parse(std::string(object.at("secret").as_string()));
  if (object.contains("error")) {
    EXPECT_FALSE(secret.has_value());
    return;
  }
  ASSERT_TRUE(secret.has_value());
  std::vector<http::Header> headers;
  for (const auto& [name, value] : object.at("headers").as_object())
    headers.push_back({.name = name, .value = std::string_view(value.as_string())});
  const std::string_view body = object.at("body").as_string();
  const Status verified = verify_webhook({&*secret, 1}, headers, body, object.at("now").as_int64());
  EXPECT_EQ(verified.has_value(), valid) << (verified ? "" : verified.error().message);
  if (!valid) return;
  const auto header = [&headers](std::string_view name) {
    for (const http::Header& each : headers) {
      if (http::equal_names(each.name, name)) return std::string(each.value);
    }
    return std::string();
  };
  const std::string signature =
      sign_webhook({&*secret, 1}, header("webhook-id"), std::stoll(header("webhook-timestamp")), body);
  EXPECT_NE((" " + header("webhook-signature") + " ").find(" " + signature + " "), std::string::npos);
}

TEST(WebhookSignature, AgreesWithEveryVector) {
  const auto text = read_file(WAYBILL_SOURCE_DIR "/tests/data/standard_webhooks.json");
  ASSERT_TRUE(text.has_value());
  const boost::json::value vectors = boost::json::parse(*text);
  const boost::json::array& cases = vectors.at("cases").as_array();
  EXPECT_EQ(cases.size(), 29U);
  for (const boost::json::value& each : cases) check(each.as_object());
}

TEST(WebhookSignature, WhileSecretsChangeEitherIsEnough) {
  const std::vector<WebhookSecret> both = {*WebhookSecret::parse("whsec_bmV3IHNlY3JldA=="),
                                           *WebhookSecret::parse("whsec_b2xkIHNlY3JldA==")};
  const std::string signatures = sign_webhook(both, "msg_1", 1700000000, "{}");
  const std::vector<http::Header> headers = {{.name = "webhook-id", .value = "msg_1"},
                                             {.name = "webhook-timestamp", .value = "1700000000"},
                                             {.name = "webhook-signature", .value = signatures}};
  for (const WebhookSecret& one : both)
    EXPECT_TRUE(verify_webhook({&one, 1}, headers, "{}", 1700000000).has_value());
  const WebhookSecret other = *WebhookSecret::parse("whsec_bm9uZQ==");
  EXPECT_FALSE(verify_webhook({&other, 1}, headers, "{}", 1700000000).has_value());
}

TEST(WebhookSignature, ASecretThatIsNoneIsNotShown) {
  const Result<WebhookSecret> secret = WebhookSecret::parse("whsec_hunter2!");
  ASSERT_FALSE(secret.has_value());
  EXPECT_EQ(secret.error().message.find("hunter2"), std::string::npos);
}

}  // namespace
}  // namespace waybill::jobs
