// Deliveries: that a job has ended is to be told to its webhook.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "store/command.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/counters.h"

namespace waybill::store::sqlite {

enum class DeliveryState : std::uint8_t { kPending, kDelivered, kDead };  // as stored

// The tables `deliveries` and `disabled_urls`.
class DeliveryRows {
 public:
  DeliveryRows(Connection& connection, Counters& counters);
  void load();  // also after a rollback

  void add(std::int64_t job, std::string_view url, Time now);
  struct Due {
    std::int64_t id = 0, job = 0;
    std::uint32_t attempts = 0;
    Time created = kNever;
    std::string url;
  };
  // Those whose time has come, and will come again at `until`.
  [[nodiscard]] std::vector<Due> claim(std::size_t max, Time now, Time until);
  [[nodiscard]] bool settle(const SettleDelivery& settle);
  [[nodiscard]] bool resend(std::int64_t job, Time now);
  void remove_of(std::int64_t job);

 private:
  void disable(const std::string& url);

  Connection& connection_;
  Counters& counters_;
  Statement urls_, insert_, due_, postpone_, settle_, exists_, latest_, again_, remove_;
  Statement disable_, kill_, enable_;
  std::set<std::string, std::less<>> disabled_;
};

}  // namespace waybill::store::sqlite
