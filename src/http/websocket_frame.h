// The frames of WebSockets (RFC 6455), as a server reads and writes them. No extensions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/request.h"

namespace waybill::http {

// Why a WebSocket ended (RFC 6455 section 7.4.1, and IANA's registry).
namespace close_code {
inline constexpr std::uint16_t kNormal = 1000, kGoingAway = 1001, kProtocolError = 1002, kUnsupported = 1003,
                               kNone = 1005,  // never sent: a close frame without a code
    kAbnormal = 1006,                         // never sent: no close frame
    kBadText = 1007, kPolicy = 1008, kTooBig = 1009, kServerFault = 1011, kTryAgainLater = 1013;
}  // namespace close_code

enum class Opcode : std::uint8_t {
  kContinuation = 0,
  kText = 1,
  kBinary = 2,
  kClose = 8,
  kPing = 9,
  kPong = 10
};

// Appends one whole frame, not masked. Of a control frame the payload is at most 125 bytes.
void append_frame(Opcode opcode, std::string_view payload, std::string& out);
// A close frame. The reason is cut where it is too long.
void append_close(std::uint16_t code, std::string_view reason, std::string& out);

// Reads what a client sends: frames are masked, messages are put together and, where they are text, valid
// UTF-8. Holds no more than one message. Not thread-safe.
class FrameReader {
 public:
  enum class State : std::uint8_t {
    kNeedMore,  // all bytes given so far belong to a frame, or message, that goes on
    kText,      // payload() is a message
    kBinary,    // likewise
    kPing,      // payload() is to be sent back
    kPong,
    kClose,   // code(): what it says, or kNone; payload(): the reason. Nothing may follow
    kFailed,  // code(): what to end with; nothing more can be read
  };

  explicit FrameReader(std::size_t max_message_bytes) : max_message_bytes_(max_message_bytes) {}

  // Takes bytes from the front and says how many; those not taken are to be given again.
  State consume(std::string_view bytes, std::size_t& taken);

  [[nodiscard]] std::string take_payload();  // of what was told last
  [[nodiscard]] std::uint16_t code() const noexcept { return code_; }

 private:
  [[nodiscard]] bool read_head(std::string_view bytes, std::size_t& taken);
  [[nodiscard]] std::size_t head_length() const noexcept;
  [[nodiscard]] bool accept_head();
  State end_frame();
  State read_close();
  State failed(std::uint16_t code) noexcept;

  const std::size_t max_message_bytes_;
  std::array<std::uint8_t, 14> head_{};
  std::size_t head_size_ = 0;  // of its bytes, those that are here
  bool in_payload_ = false;    // the head is complete and accepted
  std::uint64_t left_ = 0;     // of the frame's payload
  std::size_t mask_at_ = 0;    // which byte of the mask is next
  bool in_message_ = false, text_ = false, failed_ = false, closed_ = false;
  std::string message_;  // of the message that goes on
  std::string control_;  // of the control frame within it
  std::string payload_;
  std::uint16_t code_ = close_code::kNone;
};

// Whether a request asks for a WebSocket, as RFC 6455 section 4.2.1 has it; kUnsupported: another version
// than
// 13. The message says what is missing.
[[nodiscard]] Status check_upgrade(const Request& request);
// What Sec-WebSocket-Accept has to be for a Sec-WebSocket-Key.
[[nodiscard]] std::string accept_key(std::string_view key);

// Whether a comma-separated header value names a token (case does not matter).
[[nodiscard]] bool has_token(std::string_view value, std::string_view token) noexcept;

}  // namespace waybill::http
