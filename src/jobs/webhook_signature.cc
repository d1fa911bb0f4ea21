#include "jobs/webhook_signature.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/base64.h"
#include "base/check.h"

namespace waybill::jobs {
namespace {

constexpr std::string_view kPrefix = "whsec_";

std::optional<std::string_view> value_of(std::span<const http::Header> headers, std::string_view name) {
  for (const http::Header& header : headers) {
    if (http::equal_names(header.name, name)) return header.value;
  }
  return std::nullopt;
}

// The digest must not be found by timing how much of a guess was right.
bool equal(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::unexpected<Error> disbelieved(std::string message) {
  return fail(ErrorCode::kUnauthenticated, std::move(message));
}

}  // namespace

Result<WebhookSecret> WebhookSecret::parse(std::string_view text) {
  if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
  std::optional<std::string> key = decode_base64(text);
  if (!key || key->empty()) {
    return fail(ErrorCode::kInvalidInput,
                "A webhook secret is base64, as \"whsec_\" and what `openssl rand -base64 32` prints.");
  }
  return WebhookSecret(std::move(*key));
}

std::string WebhookSecret::sign(std::string_view id, std::int64_t timestamp, std::string_view body) const {
  std::string signed_text = fmt::format("{}.{}.", id, timestamp);
  signed_text.append(body);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  const unsigned char* made = ::HMAC(::EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
                                     reinterpret_cast<const unsigned char*>(signed_text.data()),
                                     signed_text.size(), digest.data(), &size);
  WAYBILL_CHECK(made != nullptr);
  return "v1," + base64(std::as_bytes(std::span(digest.data(), size)));
}

std::string sign_webhook(std::span<const WebhookSecret> secrets, std::string_view id, std::int64_t timestamp,
                         std::string_view body) {
  std::string signatures;
  for (const WebhookSecret& secret : secrets) {
    if (!signatures.empty()) signatures += ' ';
    signatures += secret.sign(id, timestamp, body);
  }
  return signatures;
}

Status verify_webhook(std::span<const WebhookSecret> secrets, std::span<const http::Header> headers,
                      std::string_view body, std::int64_t now) {
  const auto id = value_of(headers, "webhook-id");
  const auto time = value_of(headers, "webhook-timestamp");
  const auto signatures = value_of(headers, "webhook-signature");
  if (!id || !time || !signatures)
    return disbelieved("One of the headers webhook-id, webhook-timestamp, webhook-signature is missing.");
  std::int64_t timestamp = 0;
  const auto [end, error] = std::from_chars(time->data(), time->data() + time->size(), timestamp);
  if (error != std::errc() || end != time->data() + time->size() || timestamp < 0)
    return disbelieved("The header webhook-timestamp is not a number of seconds since 1970.");
  const auto tolerance = std::chrono::duration_cast<std::chrono::seconds>(kWebhookTolerance).count();
  if (timestamp < now - tolerance) return disbelieved("The webhook is too old.");
  if (timestamp > now + tolerance) return disbelieved("The webhook is from the future.");
  for (const WebhookSecret& secret : secrets) {
    const std::string expected = secret.sign(*id, timestamp, body);
    std::string_view rest = *signatures;
    while (!rest.empty()) {
      const std::string_view one = rest.substr(0, rest.find(' '));
      if (equal(one, expected)) return {};
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    }
  }
  return disbelieved("None of the signatures is right.");
}

}  // namespace waybill::jobs
