// Signatures of webhooks as Standard Webhooks 1.0 has them (the symmetric ones, "v1"): HMAC-SHA256 over the
// id, the time and the body.
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "http/request.h"

namespace waybill::jobs {

// Sender and receiver share it. Immutable.
class WebhookSecret {
 public:
  // Base64, with "whsec_" before it or without. kInvalidInput; the message never shows the secret.
  [[nodiscard]] static Result<WebhookSecret> parse(std::string_view text);

  // "v1,BASE64". `timestamp`: seconds since 1970.
  [[nodiscard]] std::string sign(std::string_view id, std::int64_t timestamp, std::string_view body) const;

 private:
  explicit WebhookSecret(std::string key) : key_(std::move(key)) {}
  std::string key_;
};

// The header webhook-signature: one signature of each secret, so that a receiver may know any of them while
// they change.
[[nodiscard]] std::string sign_webhook(std::span<const WebhookSecret> secrets, std::string_view id,
                                       std::int64_t timestamp, std::string_view body);

inline constexpr Duration kWebhookTolerance = std::chrono::minutes(5);

// What a receiver does: one of the signatures must be of one of the secrets, and the time no further than the
// tolerance from `now` (seconds since 1970). kUnauthenticated says what is wrong.
[[nodiscard]] Status verify_webhook(std::span<const WebhookSecret> secrets,
                                    std::span<const http::Header> headers, std::string_view body,
                                    std::int64_t now);

}  // namespace waybill::jobs
