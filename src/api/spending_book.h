// What callers have spent, kept across restarts: budgets are of days and months, and servers are not.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "api/keys.h"
#include "base/result.h"
#include "http/deadline.h"
#include "http/event_loop.h"
#include "jobs/service.h"
#include "store/store.h"

namespace waybill::api {

// Writes what has changed into the store once a second, and at the end: a crash forgets a second at most.
// What cannot be written is tried again. start() and stop() belong to one thread; the rest runs on the loop.
class SpendingBook {
 public:
  // The references outlive stop().
  SpendingBook(CallerAccounts& accounts, jobs::Service& service, http::EventLoop& loop);
  ~SpendingBook();
  SpendingBook(const SpendingBook&) = delete;
  SpendingBook& operator=(const SpendingBook&) = delete;

  // Into the accounts, from what was written. Blocks; before anything is spent.
  [[nodiscard]] static Status restore(store::Store& store, CallerAccounts& accounts);

  void start();
  // Hands the last of it to the store's writer, which must still run, as the loop.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with replies that come after the end
  bool started_ = false;
};

}  // namespace waybill::api
