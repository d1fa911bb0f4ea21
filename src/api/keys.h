// Who may call: API keys, known by their SHA-256 only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "config/config.h"
#include "upstream/caller_limits.h"

namespace waybill::api {

struct Caller {
  std::string name;  // what logs, metrics and waybills show; never the key
  bool admin = false;
  config::CallerLimits limits;
  std::vector<std::string> tags = {};
  std::shared_ptr<upstream::CallerAccount> account;  // shared: what is used outlives a change of the keys
};

// The accounts of callers by name, for as long as the program runs. Thread-safe.
class CallerAccounts {
 public:
  // With these limits from now on; what was used stays used.
  [[nodiscard]] std::shared_ptr<upstream::CallerAccount> open(const std::string& name,
                                                              const config::CallerLimits& limits);

  // What callers of these names had spent before the program was started; those that are opened later too.
  void restore(std::map<std::string, upstream::CallerSpending, std::less<>> spent);
  // Of all that were opened, by name.
  [[nodiscard]] std::vector<std::pair<std::string, upstream::CallerSpending>> spending(
      upstream::UtcTime utc) const;

 private:
  mutable std::mutex mutex_;  // guards the next two
  std::map<std::string, std::shared_ptr<upstream::CallerAccount>, std::less<>> by_name_;
  std::map<std::string, upstream::CallerSpending, std::less<>> before_;
};

// Immutable, thread-safe.
class Keyring {
 public:
  Keyring() = default;
  // Reads the keys' environment variables and files. kNotFound or kInvalidInput names the setting.
  [[nodiscard]] static Result<Keyring> load(const std::vector<config::ApiKey>& keys);

  // Gives each caller its account.
  void open_accounts(CallerAccounts& accounts);

  [[nodiscard]] bool empty() const noexcept { return keys_.empty(); }
  // In the order of the configuration.
  [[nodiscard]] std::vector<const Caller*> callers() const;
  // Null when nobody has this key. The time it takes says nothing about how much of a key was right.
  [[nodiscard]] const Caller* find(std::string_view key) const noexcept;
  // The caller of that name; null: there is none.
  [[nodiscard]] const Caller* named(std::string_view name) const noexcept;

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

// KEY of "waybill.key.KEY" in a Sec-WebSocket-Protocol: pages in browsers can set no other header. Empty when
// there is none.
[[nodiscard]] std::string_view key_in_protocols(std::string_view protocols) noexcept;

}  // namespace waybill::api
