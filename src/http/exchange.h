// A request on its way through a handler, and the response that comes of it.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "http/event_loop.h"
#include "http/request.h"
#include "http/request_parser.h"
#include "http/response.h"
#include "http/task.h"

namespace waybill::http {

class WebSocket;
struct WebSocketLimits;

// Which of the server's listeners a connection came through.
enum class Surface : std::uint8_t { kPublic, kAdmin };

struct Peer {
  std::string address;  // "203.0.113.7"; empty for a UNIX socket
  Surface surface = Surface::kPublic;
  bool tls = false;
};

// Lives as long as its connection and is reused by it. Used by the loop's thread only, but for cancelled().
class Exchange {
 public:
  // What became of a response: all of its bytes were handed to the system, or the client had gone.
  using OnSent = std::move_only_function<void(bool sent)>;

  virtual ~Exchange() = default;

  Request request;
  Response response;
  // Called once when the response is on its way or cannot be; never called if the handler throws.
  OnSent on_sent;

  [[nodiscard]] virtual EventLoop& loop() noexcept = 0;
  [[nodiscard]] virtual const Peer& peer() const noexcept = 0;
  // To be called before waiting for something slow: from then on a client that hangs up sets cancelled() and
  // calls `on_hang_up`, if that is not empty, once, on the loop's thread. Forgotten at the response's end.
  virtual void watch_for_hang_up(std::move_only_function<void()> on_hang_up = {}) = 0;

  // For a body that comes in pieces: the first call sends the head too (`response` without its body), each of
  // them one piece, which is on its way when it returns. The body ends where the handler returns. False: the
  // client has gone, or took nothing for too long; nothing more can be sent.
  virtual Task<bool> write_body(std::string_view piece) = 0;
  // Whether the head is sent, so that `response` no longer matters.
  [[nodiscard]] virtual bool body_begun() const noexcept = 0;

  // Makes a WebSocket of the connection: answers 101 with the headers of `response`, and `protocol` as the
  // one that was agreed on (empty: none). It ends where the handler returns, at the latest; `response` no
  // longer matters. An error says what the request lacks (kInvalidInput; kUnsupported: the version), or
  // kShuttingDown, kCancelled: the client has gone; then `response` is to be filled as ever.
  virtual Task<Result<WebSocket*>> upgrade(std::string_view /*protocol*/, const WebSocketLimits& /*limits*/) {
    co_return fail(ErrorCode::kUnsupported, "There is no connection here that could become a WebSocket.");
  }
  // Becomes true when nobody waits for the response any more.
  [[nodiscard]] const std::atomic<bool>& cancelled() const noexcept { return cancelled_; }

 protected:
  std::atomic<bool> cancelled_{false};
};

// What the server does with requests. Called on the connection's loop, for many connections at a time; must
// outlive the server.
class Handler {
 public:
  virtual ~Handler() = default;
  // Fills exchange.response. What it throws becomes a bare 500.
  virtual Task<> handle(Exchange& exchange) = 0;
  // Fills exchange.response for what never became a request; exchange.request holds what could be read of it.
  virtual void refuse(Exchange& exchange, const ParseFailure& failure) = 0;
};

}  // namespace waybill::http
