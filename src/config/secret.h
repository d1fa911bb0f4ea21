// Reads secrets from where the configuration says that they are.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/upstream_config.h"

namespace waybill::config {

inline constexpr std::size_t kMostSecretBytes = 4096;

// The secret without the white space around it: what the environment variable holds, or the first line of the
// file. kNotFound, kIo or kInvalidInput (empty, too long, not fit for a header) tells what to change and
// never the secret; Error::field is `field` (".env" or ".file" added). Blocks for a file.
[[nodiscard]] Result<std::string> read_secret(const SecretSource& source, std::string_view field);

}  // namespace waybill::config
