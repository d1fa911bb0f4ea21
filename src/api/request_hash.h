// What tells equal requests from others, and keys of one caller from those of another.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/hash.h"
#include "base/result.h"

namespace waybill::api {

inline constexpr std::size_t kMostKeyBytes = 255;

// A cryptographic hash: who can guess keys must not be able to make two of them meet. Each part is hashed by
// itself, so that no two lists of parts read the same.
[[nodiscard]] Hash128 hash_of(std::span<const std::string_view> parts);

// kInvalidInput: an Idempotency-Key that is too long.
[[nodiscard]] Status check_idempotency_key(std::string_view key);

}  // namespace waybill::api
