#include "base/hash.h"

#include <memory>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <xxhash.h>

#include "base/check.h"

namespace waybill {

std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::uint64_t hash64(std::string_view text, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

Hash128 hash128(std::string_view text, std::uint64_t seed) noexcept {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(text.data(), text.size(), seed);
  return {hash.low64, hash.high64};
}

namespace {

using DigestContext =
    std::unique_ptr<EVP_MD_CTX, decltype([](EVP_MD_CTX* context) { EVP_MD_CTX_free(context); })>;

// Looked up once: EVP_sha256() is looked up, under a lock, whenever a digest begins.
const EVP_MD* sha256_algorithm() {
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return algorithm;
}

}  // namespace

Sha256 sha256(std::span<const std::byte> bytes) {
  static thread_local const DigestContext context(EVP_MD_CTX_new());
  Sha256 digest;
  unsigned int size = 0;
  WAYBILL_CHECK(EVP_DigestInit_ex2(context.get(), sha256_algorithm(), nullptr) == 1);
  WAYBILL_CHECK(EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1);
  WAYBILL_CHECK(EVP_DigestFinal_ex(context.get(), digest.data(), &size) == 1);
  WAYBILL_CHECK(size == digest.size());
  return digest;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  std::string hex;
  for (const std::uint8_t byte : sha256(bytes)) hex += fmt::format("{:02x}", byte);
  return hex;
}

}  // namespace waybill
