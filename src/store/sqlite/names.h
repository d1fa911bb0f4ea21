// Names of queues, callers and endpoints as small integers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "store/sqlite/connection.h"

namespace waybill::store::sqlite {

// The table `names` and what is known of it. They only ever become more. Not thread-safe, like its
// connection.
class Names {
 public:
  explicit Names(Connection& connection);

  // Of a name that may be new.
  [[nodiscard]] std::int64_t intern(std::string_view name);
  [[nodiscard]] std::optional<std::int64_t> find(std::string_view name);
  // Valid until forget().
  [[nodiscard]] const std::string& name(std::int64_t id);

  // What was added is not there: the transaction was rolled back.
  void forget();

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>{}(text);
    }
  };
  void remember(std::int64_t id, std::string_view name);

  Statement find_, insert_, name_;
  Connection& connection_;
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> ids_;
  std::unordered_map<std::int64_t, std::string> names_;
};

}  // namespace waybill::store::sqlite
