#include "api/keys.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <openssl/crypto.h>

#include "base/hash.h"
#include "base/trim.h"
#include "config/secret.h"
#include "http/request.h"

namespace waybill::api {
namespace {

Sha256 digest_of(std::string_view key) { return sha256(std::as_bytes(std::span(key))); }

}  // namespace

Result<Keyring> Keyring::load(const std::vector<config::ApiKey>& keys) {
  Keyring ring;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const config::ApiKey& key = keys[i];
    const std::string field = fmt::format("keys[{}]", i);
    Key entry = {
        .digest = {},
        .caller = {
            .name = key.name, .admin = key.admin, .limits = key.limits, .tags = key.tags, .account = {}}};
    if (!key.sha256.empty()) {
      for (std::size_t byte = 0; byte < entry.digest.size(); ++byte) {
        entry.digest[byte] =
            static_cast<std::uint8_t>(std::stoul(key.sha256.substr(2 * byte, 2), nullptr, 16));
      }
    } else {
      Result<std::string> secret = config::read_secret({key.env, key.file, key.position}, field);
      if (!secret) {
        return fail(secret.error().code, fmt::format("The key \"{}\": {}", key.name, secret.error().message),
                    secret.error().field);
      }
      entry.digest = digest_of(*secret);
      ::OPENSSL_cleanse(secret->data(), secret->size());
    }
    ring.keys_.push_back(std::move(entry));
  }
  return ring;
}

std::shared_ptr<upstream::CallerAccount> CallerAccounts::open(const std::string& name,
                                                              const config::CallerLimits& limits) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<upstream::CallerAccount>& account = by_name_[name];
  if (account) {
    account->configure(limits, std::chrono::steady_clock::now());
  } else {
    account = std::make_shared<upstream::CallerAccount>(name, limits);
    if (const auto spent = before_.find(name); spent != before_.end()) account->restore(spent->second);
  }
  return account;
}

void CallerAccounts::restore(std::map<std::string, upstream::CallerSpending, std::less<>> spent) {
  const std::lock_guard lock(mutex_);
  before_ = std::move(spent);
  for (const auto& [name, account] : by_name_) {
    if (const auto found = before_.find(name); found != before_.end()) account->restore(found->second);
  }
}

std::vector<std::pair<std::string, upstream::CallerSpending>> CallerAccounts::spending(
    upstream::UtcTime utc) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, upstream::CallerSpending>> spending;
  for (const auto& [name, account] : by_name_) spending.emplace_back(name, account->spending(utc));
  return spending;
}

void Keyring::open_accounts(CallerAccounts& accounts) {
  for (Key& key : keys_) key.caller.account = accounts.open(key.caller.name, key.caller.limits);
}

const Caller* Keyring::find(std::string_view key) const noexcept {
  if (key.empty() || key.size() > config::kMostSecretBytes) return nullptr;
  const Sha256 digest = digest_of(key);
  const Caller* found = nullptr;
  for (const Key& each : keys_) {
    if (::CRYPTO_memcmp(each.digest.data(), digest.data(), digest.size()) == 0) found = &each.caller;
  }
  return found;
}

std::vector<const Caller*> Keyring::callers() const {
  std::vector<const Caller*> callers;
  for (const Key& key : keys_) callers.push_back(&key.caller);
  return callers;
}

const Caller* Keyring::named(std::string_view name) const noexcept {
  const auto found =
      std::ranges::find(keys_, name, [](const Key& key) { return std::string_view(key.caller.name); });
  return found == keys_.end() ? nullptr : &found->caller;
}

std::string_view presented_key(std::string_view authorization, std::string_view x_api_key) noexcept {
  constexpr std::string_view kScheme = "Bearer ";
  if (authorization.size() > kScheme.size() &&
      http::equal_names(authorization.substr(0, kScheme.size()), kScheme)) {
    return trimmed(authorization.substr(kScheme.size()));
  }
  return trimmed(x_api_key);
}

std::string_view key_in_protocols(std::string_view protocols) noexcept {
  constexpr std::string_view kBefore = "waybill.key.";
  while (!protocols.empty()) {
    std::string_view one = protocols.substr(0, protocols.find(','));
    protocols.remove_prefix(std::min(protocols.size(), one.size() + 1));
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (one.starts_with(kBefore)) return one.substr(kBefore.size());
  }
  return {};
}

}  // namespace waybill::api
