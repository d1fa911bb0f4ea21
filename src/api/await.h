// From "answers at once or calls back" to something that a coroutine awaits.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "base/result.h"
#include "http/exchange.h"
#include "http/pending.h"
#include "http/task.h"

namespace waybill::api {

// `start(done)` answers at once with a value, or with nothing, and then calls `done` exactly once, later,
// through the executor of the exchange's loop. While it is waited for, a client that hangs up is noticed.
template <class T, class Start>
http::Task<Result<T>> await_answer(http::Exchange& exchange, Start start) {
  http::Pending<Result<T>> pending;
  std::move_only_function<void(Result<T>)> done = [&pending](Result<T> result) {
    pending.set(std::move(result));
  };
  std::optional<Result<T>> at_once = start(std::move(done));
  if (at_once) co_return std::move(*at_once);
  exchange.watch_for_hang_up({});
  // The loop does other things meanwhile.
  const char* activity = exchange.loop().set_activity(nullptr);
  Result<T> result = co_await pending.get();
  exchange.loop().set_activity(activity);
  co_return result;
}

}  // namespace waybill::api
