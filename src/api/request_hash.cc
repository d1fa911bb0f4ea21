#include "api/request_hash.h"

#include <cstring>
#include <string>

#include <fmt/format.h>

namespace waybill::api {

Hash128 hash_of(std::span<const std::string_view> parts) {
  std::string digests;
  digests.reserve(parts.size() * sizeof(Sha256));
  for (const std::string_view part : parts) {
    const Sha256 digest = sha256(std::as_bytes(std::span(part)));
    digests.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  }
  const Sha256 digest = sha256(std::as_bytes(std::span(digests)));
  Hash128 hash;
  std::memcpy(&hash.low, digest.data(), sizeof hash.low);
  std::memcpy(&hash.high, digest.data() + sizeof hash.low, sizeof hash.high);
  return hash;
}

Status check_idempotency_key(std::string_view key) {
  if (key.size() <= kMostKeyBytes) return {};
  return fail(
      ErrorCode::kInvalidInput,
      fmt::format("An Idempotency-Key has at most {} bytes; this one has {}.", kMostKeyBytes, key.size()),
      "Idempotency-Key");
}

}  // namespace waybill::api
