// A result that comes later, as something that a coroutine awaits.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include <boost/asio/async_result.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "http/task.h"

namespace waybill::http {

// Set once, awaited once, both on the loop's thread; in either order. Must outlive the wait.
template <class T>
class Pending {
 public:
  // What is set after the first is dropped.
  void set(T result) {
    if (result_) return;
    result_.emplace(std::move(result));
    if (resume_) std::exchange(resume_, nullptr)();
  }
  [[nodiscard]] bool is_set() const noexcept { return result_.has_value(); }

  Task<T> get() {
    if (!result_) {
      constexpr boost::asio::use_awaitable_t<boost::asio::io_context::executor_type> token{};
      auto wait = [this](auto handler) { resume_ = std::move(handler); };
      co_await boost::asio::async_initiate<decltype(token), void()>(std::move(wait), token);
    }
    co_return std::move(*result_);
  }

 private:
  std::optional<T> result_;
  std::move_only_function<void()> resume_;
};

}  // namespace waybill::http
