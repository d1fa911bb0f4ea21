// Who may call: API keys, known by their SHA-256 only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "config/config.h"

namespace waybill::api {

struct Caller {
  std::string name;  // what logs, metrics and waybills show; never the key
  bool admin = false;
};

// Immutable, thread-safe.
class Keyring {
 public:
  Keyring() = default;
  // Reads the keys' environment variables and files. kNotFound or kInvalidInput names the setting.
  [[nodiscard]] static Result<Keyring> load(const std::vector<config::ApiKey>& keys);

  [[nodiscard]] bool empty() const noexcept { return keys_.empty(); }
  // Null when nobody has this key. The time it takes says nothing about how much of a key was right.
  [[nodiscard]] const Caller* find(std::string_view key) const noexcept;

 private:
  struct Key {
    Sha256 digest;
    Caller caller;
  };
  std::vector<Key> keys_;
};

// The key in "Authorization: Bearer KEY", else in "x-api-key"; empty when there is none.
[[nodiscard]] std::string_view presented_key(std::string_view authorization,
                                             std::string_view x_api_key) noexcept;

}  // namespace waybill::api
