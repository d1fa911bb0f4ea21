// One client connection: requests in, responses out, in order, within limits.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "http/body_share.h"
#include "http/exchange.h"
#include "http/request_parser.h"
#include "http/stream.h"
#include "http/websocket.h"

namespace waybill::http {

class TlsContext;

struct SessionLimits {
  ParserLimits parser;
  Duration header_timeout =
      std::chrono::seconds(10);                       // from a request's first byte to the end of its headers
  Duration body_timeout = std::chrono::seconds(30);   // without a byte of the body
  Duration idle_timeout = std::chrono::seconds(75);   // between requests
  Duration write_timeout = std::chrono::seconds(30);  // without a byte of the response taken
  std::uint64_t max_total_body_bytes = 1U << 30;      // of all bodies beyond BodyShare::kUncounted
};

// Counted by all sessions of a server.
struct SessionCounters {
  std::atomic<std::uint64_t> requests{0}, refused{0}, hung_up{0}, write_stalls{0}, handler_threw{0};
  std::atomic<std::uint64_t> timed_out_header{0}, timed_out_body{0}, timed_out_idle{0},
      timed_out_handshake{0};
  std::atomic<std::uint64_t> body_bytes{0}, bodies_refused{0};  // set aside now; for which there was no room
};

// Owned by its coroutine and by waits that may end after it, hence shared. Everything but the destructor runs
// on the loop's thread.
class Session final : public Exchange, public std::enable_shared_from_this<Session> {
 public:
  Session(EventLoop& loop, int descriptor, const TlsContext* tls, Peer peer, const SessionLimits& limits,
          Handler& handler, SessionCounters& counters);

  // The whole life of the connection.
  Task<> run();

  // The loop's tick: ends what has taken too long.
  void check_deadline(TimePoint now);
  // No request after the one that is being answered. Where there is none, a moment for one that is on its
  // way.
  void drain();
  // Ends the connection; a handler that is running is told through cancelled().
  void abort();

  [[nodiscard]] bool is_answering() const noexcept {
    return phase_ == Phase::kHandle || phase_ == Phase::kWrite;
  }

  EventLoop& loop() noexcept override { return loop_; }
  const Peer& peer() const noexcept override { return peer_; }
  void watch_for_hang_up(std::move_only_function<void()> on_hang_up) override;
  Task<bool> write_body(std::string_view piece) override;
  bool body_begun() const noexcept override { return body_begun_; }
  Task<Result<WebSocket*>> upgrade(std::string_view protocol, const WebSocketLimits& limits) override;

 private:
  enum class Phase : std::uint8_t { kHandshake, kIdle, kHeader, kBody, kHandle, kWrite, kLinger };

  void enter(Phase phase, Duration limit);
  Task<bool> handshake();
  Task<bool> read_request();
  Task<bool> read_more();
  Task<> answer();
  Task<> end_websocket(bool threw);
  Task<bool> flush();
  void send_early();
  Task<> linger();
  bool has_room_for_body() noexcept;
  void refuse(const ParseFailure& failure);
  void shorten_idling();
  void queue_response(bool keep_alive);
  void queue_head(bool keep_alive, Framing framing);
  void hang_up();
  void report_queued(bool sent);  // the responses in out_
  void report_lost();             // those, and the one that is being made
  void drop_taken();
  void give_back_buffers();

  EventLoop& loop_;
  Stream stream_;
  Peer peer_;
  const SessionLimits& limits_;
  Handler& handler_;
  SessionCounters& counters_;
  RequestParser parser_;
  BodyShare body_share_;  // of `request`, from its body's first bytes to the next request

  std::string in_;  // bytes that have come; from in_begin_ on they are not taken yet
  std::size_t in_begin_ = 0;
  std::string out_;
  std::vector<OnSent> unsent_;  // of the responses in out_
  std::move_only_function<void()> on_hang_up_;
  std::unique_ptr<WebSocket> websocket_;  // from the upgrade to its end

  Phase phase_ = Phase::kHandshake;
  TimePoint deadline_ = TimePoint::max();
  bool timed_out_ = false, draining_ = false, aborted_ = false, keep_ = true;
  bool body_begun_ = false, chunked_ = false, send_early_posted_ = false;
};

}  // namespace waybill::http
