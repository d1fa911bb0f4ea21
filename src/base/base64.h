// Base64 with padding (RFC 4648 section 4).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace waybill {

[[nodiscard]] std::string base64(std::span<const std::byte> bytes);

// The bytes. Padding may be left out, and bits at the end that make no byte are dropped, as most readers do;
// any other character than those of the alphabet is refused, white space too.
[[nodiscard]] std::optional<std::string> decode_base64(std::string_view text);

}  // namespace waybill
