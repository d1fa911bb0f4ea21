// Base64 with padding (RFC 4648 section 4).
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace waybill {

[[nodiscard]] std::string base64(std::span<const std::byte> bytes);

}  // namespace waybill
