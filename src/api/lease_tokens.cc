#include "api/lease_tokens.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/check.h"
#include "base/uuid.h"
#include "jobs/service.h"

namespace waybill::api {
namespace {

constexpr std::string_view kSecretName = "lease-secret";
constexpr std::size_t kMacDigits = 16;

bool is_hex(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string hex(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::optional<LeaseTokens::Secret> secret_of(std::string_view text) noexcept {
  LeaseTokens::Secret secret{};
  if (text.size() != 2 * secret.size() || !is_hex(text)) return std::nullopt;
  for (std::size_t i = 0; i < secret.size(); ++i)
    (void)std::from_chars(text.data() + 2 * i, text.data() + 2 * i + 2, secret[i], 16);
  return secret;
}

}  // namespace

Result<LeaseTokens> LeaseTokens::restore(store::Store& store) {
  const auto facts = store.remembered(kSecretName);
  if (!facts) return std::unexpected(facts.error());
  for (const auto& [name, text] : *facts) {
    if (name != kSecretName) continue;
    if (const std::optional<Secret> secret = secret_of(text)) return LeaseTokens(*secret);
    return fail(ErrorCode::kCorrupt,
                fmt::format("the store's \"{}\" is not {} hexadecimal digits", name, 2 * sizeof(Secret)));
  }
  Secret secret{};
  if (::RAND_bytes(secret.data(), static_cast<int>(secret.size())) != 1)
    return fail(ErrorCode::kInternal, "the system has no random bytes for the tokens of leases");
  const store::Command remember = store::Remember{.name = std::string(kSecretName), .text = hex(secret)};
  const Result<store::Committed> done = store.commit({&remember, 1}, jobs::store_now());
  if (!done) return std::unexpected(done.error());
  return LeaseTokens(secret);
}

std::string LeaseTokens::sign(const store::Lease& lease) const {
  const std::string text = fmt::format("{}.{}", to_string(lease.id), lease.fence);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  const unsigned char* made =
      ::HMAC(::EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size);
  WAYBILL_CHECK(made != nullptr && size >= kMacDigits / 2);
  return hex({digest.data(), kMacDigits / 2});
}

std::string LeaseTokens::make(const store::Lease& lease) const {
  return fmt::format("{}.{}.{}", to_string(lease.id), lease.fence, sign(lease));
}

std::optional<LeaseTokens::Read> LeaseTokens::read(std::string_view token) const {
  const std::size_t first = token.find('.'), last = token.rfind('.');
  if (first == last) return std::nullopt;  // none, or one
  const std::optional<Uuid> id = parse_uuid(token.substr(0, first));
  const std::string_view mac = token.substr(last + 1);
  Read read;
  const char* const end = token.data() + last;
  const auto [at, error] = std::from_chars(token.data() + first + 1, end, read.lease.fence);
  if (!id || error != std::errc() || at != end || mac.size() != kMacDigits || !is_hex(mac))
    return std::nullopt;
  read.lease.id = *id;
  read.genuine = ::CRYPTO_memcmp(sign(read.lease).data(), mac.data(), kMacDigits) == 0;
  return read;
}

}  // namespace waybill::api
