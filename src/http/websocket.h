// A connection that has become a WebSocket (RFC 6455): messages both ways, until either side ends it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "http/event_loop.h"
#include "http/stream.h"
#include "http/task.h"
#include "http/websocket_frame.h"

namespace waybill::http {

struct WebSocketLimits {
  std::size_t max_message_bytes = 64U << 10;          // from the client
  std::size_t max_buffered_bytes = 1U << 20;          // sent, and not yet taken by the client
  Duration ping_after = std::chrono::seconds(30);     // without a byte from the client
  Duration patience = std::chrono::seconds(75);       // likewise, answers to pings too: it is gone
  Duration write_timeout = std::chrono::seconds(30);  // without a byte taken by the client
  Duration close_timeout = std::chrono::seconds(5);   // until the client ends it too
};

// Pings are sent and answered by itself, while somebody reads. Used by its loop's thread only; one coroutine
// reads.
class WebSocket {
 public:
  struct Message {
    bool text = true;
    std::string data;
  };

  // `early`: bytes of the client that are here already. The stream outlives it.
  WebSocket(EventLoop& loop, Stream& stream, const WebSocketLimits& limits, std::string early);
  ~WebSocket();
  WebSocket(const WebSocket&) = delete;
  WebSocket& operator=(const WebSocket&) = delete;

  // The next message; nothing: it has ended, whoever ended it.
  Task<std::optional<Message>> read();

  // Sends a text, which must be UTF-8, as the client takes it. False: it has ended, or ends now because the
  // client leaves too much untaken (kTryAgainLater).
  bool send(std::string_view text);
  // Says that it ends; read() then waits for the client to say so too. Once; later calls do nothing.
  void close(std::uint16_t code, std::string_view reason = {});

  [[nodiscard]] bool is_open() const noexcept { return !close_sent_ && !ended_; }
  [[nodiscard]] std::size_t buffered() const noexcept { return out_.size() - out_begin_; }
  // Of the end, by whoever said it first; kAbnormal: nobody did.
  [[nodiscard]] std::uint16_t end_code() const noexcept { return end_code_; }

  // For the connection that it is:
  void check_deadlines(TimePoint now);
  void abort();
  [[nodiscard]] bool is_aborted() const noexcept { return aborted_; }
  // Ends it in good order where that has not happened, and waits for what is yet to be sent.
  Task<> finish(std::uint16_t code);

 private:
  void pump();
  void written(bool ready);
  void append(Opcode opcode, std::string_view payload);
  Task<bool> read_more();

  EventLoop& loop_;
  Stream& stream_;
  const WebSocketLimits limits_;
  FrameReader reader_;
  std::string in_, out_;
  std::size_t in_begin_ = 0, out_begin_ = 0;
  bool close_sent_ = false, ended_ = false, aborted_ = false, writing_ = false, pinged_ = false;
  std::uint16_t end_code_ = close_code::kAbnormal;
  TimePoint received_at_, taken_at_, close_by_ = TimePoint::max();
  std::move_only_function<void()> on_taken_;  // when all is sent, or nothing can be
  std::shared_ptr<WebSocket*> self_;          // null once it is gone: waits for the stream may end after it
};

}  // namespace waybill::http
