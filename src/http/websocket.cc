#include "http/websocket.h"

#include <algorithm>
#include <span>
#include <utility>

#include "http/pending.h"

namespace waybill::http {
namespace {

constexpr std::size_t kKeptBytes = 1U << 10;  // larger buffers are given back when they are empty

TimePoint now() noexcept { return std::chrono::steady_clock::now(); }

}  // namespace

WebSocket::WebSocket(EventLoop& loop, Stream& stream, const WebSocketLimits& limits, std::string early)
    : loop_(loop),
      stream_(stream),
      limits_(limits),
      reader_(limits.max_message_bytes),
      in_(std::move(early)),
      received_at_(now()),
      taken_at_(received_at_),
      self_(std::make_shared<WebSocket*>(this)) {}

WebSocket::~WebSocket() { *self_ = nullptr; }

void WebSocket::append(Opcode opcode, std::string_view payload) {
  if (buffered() == 0) taken_at_ = now();
  append_frame(opcode, payload, out_);
}

bool WebSocket::send(std::string_view text) {
  if (!is_open()) return false;
  if (buffered() + text.size() > limits_.max_buffered_bytes) {
    close(close_code::kTryAgainLater, "what was sent is not read");
    return false;
  }
  append(Opcode::kText, text);
  pump();
  return !aborted_;
}

void WebSocket::close(std::uint16_t code, std::string_view reason) {
  if (!is_open()) return;
  close_sent_ = true;
  if (end_code_ == close_code::kAbnormal) end_code_ = code;
  close_by_ = now() + limits_.close_timeout;
  append_close(code, reason, out_);
  pump();
}

// Hands to the system what it takes, and sees to it that this goes on when it takes more.
void WebSocket::pump() {
  while (buffered() > 0 && !aborted_) {
    const IoResult put = stream_.write(out_.data() + out_begin_, buffered());
    if (put.state == IoState::kDone) {
      out_begin_ += put.bytes;
      taken_at_ = now();
      continue;
    }
    if (put.state == IoState::kClosed || put.state == IoState::kFailed) return abort();
    // What was taken is dropped when it is the larger part: each byte moves once on average.
    if (out_begin_ > buffered()) {
      out_.erase(0, out_begin_);
      out_begin_ = 0;
    }
    if (std::exchange(writing_, true)) return;
    stream_.on_ready(put.state, [self = self_](bool ready) {
      if (*self != nullptr) (*self)->written(ready);
    });
    return;
  }
  if (out_.capacity() > kKeptBytes) std::string().swap(out_);
  out_.clear();
  out_begin_ = 0;
  if (on_taken_) std::exchange(on_taken_, nullptr)();
}

void WebSocket::written(bool ready) {
  writing_ = false;
  if (ready) pump();
}

void WebSocket::abort() {
  if (std::exchange(aborted_, true)) return;
  ended_ = true;
  stream_.cancel();
  if (on_taken_) std::exchange(on_taken_, nullptr)();
}

// A connection that waits holds only bytes that have come: they are read into a buffer of the loop. False: no
// more will come.
Task<bool> WebSocket::read_more() {
  in_.erase(0, in_begin_);
  in_begin_ = 0;
  if (in_.empty() && in_.capacity() > kKeptBytes) std::string().swap(in_);
  for (;;) {
    if (aborted_) co_return false;
    const std::span<char> buffer = loop_.read_buffer();
    const IoResult got = stream_.read(buffer.data(), buffer.size());
    if (got.state == IoState::kDone) {
      received_at_ = now();
      pinged_ = false;
      in_.append(buffer.data(), got.bytes);
      co_return true;
    }
    if (got.state == IoState::kClosed || got.state == IoState::kFailed) {
      abort();
      co_return false;
    }
    (void)co_await stream_.wait(got.state);
  }
}

Task<std::optional<WebSocket::Message>> WebSocket::read() {
  while (!ended_) {
    std::size_t taken = 0;
    const FrameReader::State state = reader_.consume(std::string_view(in_).substr(in_begin_), taken);
    in_begin_ += taken;
    switch (state) {
      case FrameReader::State::kNeedMore:
        (void)co_await read_more();
        break;
      case FrameReader::State::kText:
      case FrameReader::State::kBinary: {
        Message message{.text = state == FrameReader::State::kText, .data = reader_.take_payload()};
        if (!close_sent_) co_return message;
        break;
      }
      case FrameReader::State::kPing: {
        const std::string payload = reader_.take_payload();
        if (!is_open()) break;
        if (buffered() + payload.size() > limits_.max_buffered_bytes) {
          close(close_code::kTryAgainLater, "what was sent is not read");
          break;
        }
        append(Opcode::kPong, payload);
        pump();
        break;
      }
      case FrameReader::State::kPong:
        (void)reader_.take_payload();
        break;
      case FrameReader::State::kClose:
      case FrameReader::State::kFailed:
        if (!close_sent_) end_code_ = reader_.code();
        close(reader_.code());
        ended_ = true;
        break;
    }
  }
  co_return std::nullopt;
}

Task<> WebSocket::finish(std::uint16_t code) {
  close(code);
  for (;;) {
    std::optional<Message> ignored = co_await read();
    if (!ignored) break;
  }
  if (aborted_ || buffered() == 0) co_return;
  Pending<bool> taken;
  on_taken_ = [&taken] { taken.set(true); };
  (void)co_await taken.get();
}

void WebSocket::check_deadlines(TimePoint at) {
  if (aborted_) return;
  const bool stuck = buffered() > 0 && at - taken_at_ >= limits_.write_timeout;
  if (at >= close_by_ || stuck || (!ended_ && at - received_at_ >= limits_.patience)) return abort();
  if (is_open() && !pinged_ && at - received_at_ >= limits_.ping_after) {
    pinged_ = true;
    append(Opcode::kPing, {});
    pump();
  }
}

}  // namespace waybill::http
