// Work that would hold up an event loop: it runs on the engine's text threads, and its coroutine awaits it.
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <utility>
#include <variant>

#include "api/await.h"
#include "api/call.h"

namespace waybill::api {

// What the loops do themselves, in a tenth of a millisecond: to parse a body of 64 KiB, to write 4,096
// numbers or 256 decisions.
inline constexpr std::size_t kShortBody = 64U << 10;
inline constexpr std::size_t kFewNumbers = 4096;
inline constexpr std::size_t kFewDecisions = 256;

// Runs `work`, which returns a Status and outlives the wait. kOverloaded, and nothing was run, when too much
// waits for the text threads.
template <class Work>
http::Task<Status> on_text_thread(Call& call, Work& work) {
  using Done = std::move_only_function<void(Result<std::monostate>)>;
  WorkerPool& texts = call.deployment->engine->texts();
  http::EventLoop& loop = call.exchange.loop();
  Status status;
  auto start = [&](Done&& done) -> std::optional<Result<std::monostate>> {
    auto run = [&work, &status, &loop, done = std::move(done)]() mutable {
      try {
        status = work();
      } catch (const std::exception& error) {
        status = fail(ErrorCode::kInternal, error.what());
      }
      loop.post([done = std::move(done)]() mutable { done(std::monostate()); });
    };
    if (texts.post(std::move(run))) return std::nullopt;
    return std::unexpected(Error{.code = ErrorCode::kOverloaded,
                                 .message = "too many long bodies wait to be read; send this one again later",
                                 .field = {},
                                 .retry_after = texts.predicted_wait()});
  };
  Result<std::monostate> ran = co_await await_answer<std::monostate>(call.exchange, start);
  if (!ran) co_return std::unexpected(std::move(ran.error()));
  co_return status;
}

// Runs `read`, which reads the request's body: here where that is short, else on a text thread.
template <class Work>
http::Task<Status> read_body(Call& call, Work& read) {
  Status status;
  if (call.request().body.size() <= kShortBody) {
    status = read();
  } else {
    status = co_await on_text_thread(call, read);
  }
  co_return status;
}

// As on_text_thread(), but on this loop when the text threads have too much to do: an answer that is there
// already.
template <class Work>
http::Task<Status> on_text_thread_or_here(Call& call, Work& work) {
  Status status = co_await on_text_thread(call, work);
  if (!status && status.error().code == ErrorCode::kOverloaded) status = work();
  co_return status;
}

}  // namespace waybill::api
