// The tokens by which workers elsewhere name what they have leased. Only who was given one can name a lease:
// a token is signed with a secret of the store.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/result.h"
#include "store/command.h"
#include "store/store.h"

namespace waybill::api {

// Immutable, thread-safe.
class LeaseTokens {
 public:
  using Secret = Sha256;  // 32 random bytes

  // With the store's secret, so that leases outlive the program; makes one where there is none. Before
  // anything else commits to the store. kCorrupt: it is not one.
  [[nodiscard]] static Result<LeaseTokens> restore(store::Store& store);

  explicit LeaseTokens(const Secret& secret) : secret_(secret) {}

  // "<id of the job>.<fence>.<16 hexadecimal digits: the beginning of an HMAC-SHA256 of both>"
  [[nodiscard]] std::string make(const store::Lease& lease) const;

  struct Read {
    store::Lease lease;
    bool genuine = false;  // made here, with this secret
  };
  // Nothing: it does not look like a token. The time it takes says nothing about how much was right.
  [[nodiscard]] std::optional<Read> read(std::string_view token) const;

 private:
  [[nodiscard]] std::string sign(const store::Lease& lease) const;

  Secret secret_;
};

}  // namespace waybill::api
