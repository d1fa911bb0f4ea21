#include "http/session.h"

#include <algorithm>
#include <exception>
#include <span>
#include <utility>

#include "http/tls_context.h"

namespace waybill::http {
namespace {

constexpr std::size_t kFlushBytes = 64U << 10;  // pipelined responses are sent together up to this
constexpr std::size_t kKeptBytes = 1U << 10;    // larger buffers are given back before a wait
constexpr Duration kKeepBuffers = std::chrono::seconds(1);  // of a connection without a request
constexpr Duration kLingerTime = std::chrono::seconds(2);
// While the server drains, a connection without a request is kept this long: one may be on its way.
constexpr Duration kLastRequestTime = std::chrono::milliseconds(500);
constexpr std::string_view kStopping = "the server is stopping";
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

constexpr ParseFailure kHeaderTimeout = {408, "header_timeout",
                                         "The request's headers did not arrive in time; send them faster "
                                         "(server.header_timeout)."};
constexpr ParseFailure kBodyTimeout = {
    408, "body_timeout", "The request's body stopped arriving; send it faster (server.body_timeout)."};
constexpr ParseFailure kGoneInBody = {499, "client_closed_request",
                                      "The connection ended before all of the request's body was there."};
constexpr ParseFailure kStoppedInRequest = {
    503, "shutting_down",
    "The server is stopping, and the rest of the request did not come in time; send it again."};
constexpr ParseFailure kBodiesTooLarge = {
    503, "too_many_body_bytes",
    "The bodies of all requests together are as large as this server takes (server.max_total_body_size); try "
    "again, or send less at once."};
constexpr ParseFailure kUnknownExpectation = {417, "unknown_expectation",
                                              "The only expectation known here is \"Expect: 100-continue\"."};

TimePoint now() noexcept { return std::chrono::steady_clock::now(); }

}  // namespace

Session::Session(EventLoop& loop, int descriptor, const TlsContext* tls, Peer peer,
                 const SessionLimits& limits, Handler& handler, SessionCounters& counters)
    : loop_(loop),
      stream_(loop.reactor(), descriptor, tls == nullptr ? nullptr : tls->new_session(descriptor)),
      peer_(std::move(peer)),
      limits_(limits),
      handler_(handler),
      counters_(counters),
      parser_(request, limits.parser),
      body_share_(counters.body_bytes, limits.max_total_body_bytes) {}

Task<> Session::run() {
  const bool ready = co_await handshake();
  while (ready && keep_) {
    const bool complete = co_await read_request();
    if (!complete) break;
    co_await answer();
    // The next request may be here already: then its response joins this one.
    if (keep_ && in_begin_ < in_.size() && out_.size() < kFlushBytes) continue;
    const bool sent = co_await flush();
    if (!sent) break;
  }
  if (!out_.empty()) co_await flush();
  if (!keep_) co_await linger();
  report_lost();
  stream_.close();
}

void Session::enter(Phase phase, Duration limit) {
  phase_ = phase;
  deadline_ = limit == Duration::max() ? TimePoint::max() : now() + limit;
}

Task<bool> Session::handshake() {
  enter(Phase::kHandshake, limits_.header_timeout);
  for (;;) {
    const IoState state = stream_.handshake();
    if (state == IoState::kDone) co_return true;
    if (state == IoState::kClosed || state == IoState::kFailed) co_return false;
    const bool ready = co_await stream_.wait(state);
    if (!ready) co_return false;
  }
}

// True when `request` is complete; false when the connection is to end, with out_ holding a refusal or
// nothing.
Task<bool> Session::read_request() {
  parser_.start_next();
  body_share_.give_back();
  response.clear();
  bool begun = in_begin_ < in_.size();
  if (begun) request.started = now();
  enter(begun ? Phase::kHeader : Phase::kIdle, begun ? limits_.header_timeout : limits_.idle_timeout);
  if (draining_ && !begun) shorten_idling();
  for (;;) {
    const std::string_view bytes = std::string_view(in_).substr(in_begin_);
    std::size_t taken = 0;
    const RequestParser::State state = parser_.consume(bytes, taken);
    in_begin_ += taken;
    if (state != RequestParser::State::kFailed && !has_room_for_body()) {
      ++counters_.bodies_refused;
      refuse(kBodiesTooLarge);
      co_return false;
    }
    if (state == RequestParser::State::kDone) {
      if (in_begin_ == in_.size()) drop_taken();
      request.received = now();
      co_return true;
    }
    if (state == RequestParser::State::kFailed) {
      refuse(parser_.failure());
      co_return false;
    }
    if (state == RequestParser::State::kHeaderDone) {
      const std::string_view expectation = request.header("expect");
      if (!expectation.empty() && !parser_.expects_continue()) {
        refuse(kUnknownExpectation);
        co_return false;
      }
      if (parser_.expects_continue() && request.minor_version >= 1 && in_begin_ == in_.size()) {
        out_.append(kContinue);
        const bool sent = co_await flush();
        if (!sent) co_return false;
      }
      enter(Phase::kBody, limits_.body_timeout);
      continue;
    }
    if (!out_.empty()) {  // whose client may wait for them before it sends the rest
      const TimePoint deadline = deadline_;
      const bool sent = co_await flush();
      if (!sent) co_return false;
      deadline_ = deadline;
    }
    const bool more = co_await read_more();
    if (!more) {
      if (aborted_ && begun) {
        refuse(kStoppedInRequest);
      } else if (timed_out_ && (phase_ == Phase::kHeader || phase_ == Phase::kBody)) {
        const bool in_header = phase_ == Phase::kHeader;
        ++(in_header ? counters_.timed_out_header : counters_.timed_out_body);
        refuse(in_header ? kHeaderTimeout : kBodyTimeout);
      } else if (phase_ == Phase::kBody) {
        // Its head was here: it is a request, and has an outcome.
        ++counters_.hung_up;
        refuse(kGoneInBody);
      }
      co_return false;
    }
    if (!begun) {
      begun = true;
      request.started = now();
      enter(Phase::kHeader, limits_.header_timeout);
    } else if (phase_ == Phase::kBody) {
      deadline_ = now() + limits_.body_timeout;
    }
  }
}

// A connection that waits holds only bytes that have come: they are read into a buffer of the loop.
Task<bool> Session::read_more() {
  drop_taken();
  for (;;) {
    const std::span<char> buffer = loop_.read_buffer();
    const IoResult got = stream_.read(buffer.data(), buffer.size());
    // What is here came in time: the loop may not have run for a while.
    if (got.state != IoState::kWantRead && got.state != IoState::kWantWrite) timed_out_ = false;
    if (got.state == IoState::kDone) {
      in_.append(buffer.data(), got.bytes);
      co_return true;
    }
    if (got.state == IoState::kClosed || got.state == IoState::kFailed || aborted_) co_return false;
    if (timed_out_) {
      if (phase_ == Phase::kIdle && !draining_) ++counters_.timed_out_idle;
      co_return false;
    }
    const bool ready = co_await stream_.wait(got.state);
    if (aborted_ || (!ready && !timed_out_)) co_return false;
  }
}

void Session::drop_taken() {
  in_.erase(0, in_begin_);
  in_begin_ = 0;
  if (in_.empty() && in_.capacity() > kKeptBytes) std::string().swap(in_);
}

// Thousands of connections may wait for a next request that comes late or never.
void Session::give_back_buffers() {
  if (request.head.capacity() == std::string().capacity()) return;  // done, or never used
  request = Request();
  response = Response();
  std::string().swap(in_);
  std::string().swap(out_);
  std::vector<OnSent>().swap(unsent_);
}

Task<> Session::answer() {
  const EventLoop::UnderWay under_way(loop_);
  ++counters_.requests;
  enter(Phase::kHandle, Duration::max());
  cancelled_.store(false, std::memory_order_relaxed);
  body_begun_ = false;
  bool threw = false;
  if (!out_.empty() && !send_early_posted_) {
    send_early_posted_ = true;
    loop_.post([self = shared_from_this()] { self->send_early(); });
  }
  try {
    co_await handler_.handle(*this);
  } catch (const std::exception&) {
    ++counters_.handler_threw;
    threw = true;
    on_sent = nullptr;
  }
  on_hang_up_ = nullptr;
  if (websocket_) {
    co_await end_websocket(threw);
    co_return;
  }
  if (threw) {
    if (body_begun_) abort();  // the client sees that the body has no end
    response.clear();
    response.status = 500;
    response.body = R"({"error":{"message":"This is a fault of the server, not of the request.",)"
                    R"("type":"server_error","param":null,"code":"internal"}})";
  }
  if (body_begun_) {
    keep_ = keep_ && chunked_ && !draining_ && !aborted_;
    if (chunked_ && !aborted_) out_.append(kLastChunk);
    if (on_sent) unsent_.push_back(std::exchange(on_sent, nullptr));
    co_return;
  }
  keep_ = request.keep_alive && !response.close && !draining_ && !aborted_;
  queue_response(keep_);
}

Task<bool> Session::write_body(std::string_view piece) {
  if (aborted_) co_return false;
  if (!body_begun_) {
    body_begun_ = true;
    chunked_ = request.minor_version >= 1;
    keep_ = request.keep_alive && !response.close && !draining_ && chunked_;
    queue_head(keep_, chunked_ ? Framing::kChunked : Framing::kUntilClose);
  }
  if (request.method != Method::kHead) {
    if (chunked_) {
      write_chunk(piece, out_);
    } else {
      out_.append(piece);
    }
  }
  const bool sent = co_await flush();
  if (!sent) cancelled_.store(true, std::memory_order_relaxed);
  co_return sent;
}

Task<Result<WebSocket*>> Session::upgrade(std::string_view protocol, const WebSocketLimits& limits) {
  Status fit = check_upgrade(request);
  if (!fit) co_return std::unexpected(std::move(fit.error()));
  if (draining_ || aborted_) co_return fail(ErrorCode::kShuttingDown, "The server is stopping.");
  response.status = 101;
  response.add_header("Upgrade", "websocket");
  response.add_header("Connection", "Upgrade");
  response.add_header("Sec-WebSocket-Accept", accept_key(request.header("sec-websocket-key")));
  if (!protocol.empty()) response.add_header("Sec-WebSocket-Protocol", protocol);
  body_begun_ = true;
  chunked_ = false;
  queue_head(true, Framing::kUntilClose);
  response.clear();
  const bool sent = co_await flush();
  if (!sent) {
    cancelled_.store(true, std::memory_order_relaxed);
    co_return fail(ErrorCode::kCancelled, "The client has gone.");
  }
  websocket_ = std::make_unique<WebSocket>(loop_, stream_, limits, in_.substr(in_begin_));
  std::string().swap(in_);
  in_begin_ = 0;
  if (draining_) websocket_->close(close_code::kGoingAway, kStopping);  // since it was looked at
  co_return websocket_.get();
}

Task<> Session::end_websocket(bool threw) {
  const std::uint16_t code = threw ? close_code::kServerFault : close_code::kNormal;
  co_await websocket_->finish(code);
  keep_ = false;
  if (websocket_->is_aborted()) {
    aborted_ = true;
    report_lost();
  }
  websocket_.reset();
  if (on_sent) unsent_.push_back(std::exchange(on_sent, nullptr));
}

// Before a body is asked for, and for what has come of it.
bool Session::has_room_for_body() noexcept {
  const std::uint64_t announced = parser_.announced_body_bytes();
  if (request.body.empty()) return body_share_.has_room_for(announced);
  return body_share_.grow(request.body.size(), announced > 0 ? announced : limits_.parser.max_body_bytes);
}

void Session::refuse(const ParseFailure& failure) {
  ++counters_.refused;
  std::string().swap(request.body);  // there is a while until the connection ends
  body_share_.give_back();
  if (request.received == TimePoint{}) request.received = now();
  cancelled_.store(false, std::memory_order_relaxed);
  response.clear();
  handler_.refuse(*this, failure);
  keep_ = false;
  queue_response(false);
}

void Session::queue_response(bool keep_alive) {
  queue_head(keep_alive, Framing::kLength);
  if (on_sent) unsent_.push_back(std::move(on_sent));
  on_sent = nullptr;
}

void Session::queue_head(bool keep_alive, Framing framing) {
  write_response(response,
                 {.date = loop_.date(),
                  .framing = framing,
                  .head_only = request.method == Method::kHead,
                  .keep_alive = keep_alive,
                  .minor_version = request.minor_version},
                 out_);
}

// Sends out_. False when the client is gone or does not take it.
Task<bool> Session::flush() {
  const Phase before = phase_;
  std::size_t sent = 0;
  if (!out_.empty()) enter(Phase::kWrite, limits_.write_timeout);
  while (sent < out_.size()) {
    const IoResult put = stream_.write(out_.data() + sent, out_.size() - sent);
    if (put.state == IoState::kDone) {
      sent += put.bytes;
      if (sent < out_.size()) deadline_ = now() + limits_.write_timeout;
      continue;
    }
    bool ready = put.state != IoState::kClosed && put.state != IoState::kFailed && !timed_out_ && !aborted_;
    if (ready) ready = co_await stream_.wait(put.state);
    if (!ready || timed_out_ || aborted_) {
      if (timed_out_) ++counters_.write_stalls;
      aborted_ = true;
      out_.clear();
      report_lost();
      co_return false;
    }
  }
  if (out_.capacity() > kKeptBytes) std::string().swap(out_);
  out_.clear();
  phase_ = before;
  report_queued(true);
  co_return true;
}

// Runs once a handler waits: the answers to requests before it in a pipeline do not wait with it. What the
// socket does not take now goes out with the next flush(), which also finds out whether it is broken.
void Session::send_early() {
  send_early_posted_ = false;
  if (phase_ != Phase::kHandle) return;
  while (!out_.empty()) {
    const IoResult put = stream_.write(out_.data(), out_.size());
    if (put.state != IoState::kDone) return;
    out_.erase(0, put.bytes);
  }
  report_queued(true);
}

void Session::report_queued(bool sent) {
  for (OnSent& report : unsent_) report(sent);
  unsent_.clear();
}

void Session::report_lost() {
  if (on_sent) std::exchange(on_sent, nullptr)(false);
  report_queued(false);
}

// A close with unread bytes would reset the connection, and the client could lose the answer that it is
// reading (RFC 9112 section 9.6): what still comes is read and dropped for a moment; what has come, where
// there is no moment left.
Task<> Session::linger() {
  if (!stream_.finish_writing()) co_return;
  enter(Phase::kLinger, kLingerTime);
  std::size_t dropped = 0;
  while (dropped < limits_.parser.max_body_bytes && !timed_out_) {
    const std::span<char> buffer = loop_.read_buffer();
    const IoResult got = stream_.read(buffer.data(), buffer.size());
    if (got.state == IoState::kClosed || got.state == IoState::kFailed) co_return;
    if (got.state == IoState::kDone) {
      dropped += got.bytes;
      continue;
    }
    if (aborted_) co_return;
    const bool ready = co_await stream_.wait(got.state);
    if (!ready) co_return;
  }
}

void Session::watch_for_hang_up(std::move_only_function<void()> on_hang_up) {
  on_hang_up_ = std::move(on_hang_up);
  stream_.watch_peer([this] {
    loop_.post([self = shared_from_this()] {
      if (self->phase_ == Phase::kHandle) self->hang_up();
    });
  });
}

void Session::hang_up() {
  if (cancelled_.exchange(true, std::memory_order_relaxed)) return;
  ++counters_.hung_up;
  if (on_hang_up_) std::exchange(on_hang_up_, nullptr)();
}

void Session::check_deadline(TimePoint at) {
  if (websocket_) return websocket_->check_deadlines(at);
  if (phase_ == Phase::kHandle) {
    if (!cancelled() && stream_.peer_has_closed()) hang_up();  // it is not watched by every handler
    return;
  }
  if (phase_ == Phase::kIdle && deadline_ - at < limits_.idle_timeout - kKeepBuffers) give_back_buffers();
  if (at < deadline_ || timed_out_) return;
  if (phase_ == Phase::kHandshake) ++counters_.timed_out_handshake;
  timed_out_ = true;
  stream_.cancel();
}

void Session::drain() {
  draining_ = true;
  if (websocket_) websocket_->close(close_code::kGoingAway, kStopping);
  if (phase_ == Phase::kIdle) shorten_idling();
}

void Session::shorten_idling() { deadline_ = std::min(deadline_, now() + kLastRequestTime); }

void Session::abort() {
  aborted_ = true;
  cancelled_.store(true, std::memory_order_relaxed);
  stream_.cancel();
  if (websocket_) return websocket_->abort();
  if (on_hang_up_) std::exchange(on_hang_up_, nullptr)();
}

}  // namespace waybill::http
