#include "http/websocket_frame.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include <openssl/evp.h>

#include "base/base64.h"
#include "base/check.h"
#include "base/utf8.h"

namespace waybill::http {
namespace {

constexpr std::size_t kMostControlBytes = 125;
constexpr std::uint8_t kFin = 0x80, kReserved = 0x70, kMasked = 0x80, kLength16 = 126, kLength64 = 127;

bool is_control(Opcode opcode) noexcept { return opcode >= Opcode::kClose; }

bool may_be_sent(std::uint16_t code) noexcept {
  return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
         (code >= 3000 && code <= 4999);
}

}  // namespace

void append_frame(Opcode opcode, std::string_view payload, std::string& out) {
  WAYBILL_CHECK(!is_control(opcode) || payload.size() <= kMostControlBytes);
  out.push_back(static_cast<char>(kFin | static_cast<std::uint8_t>(opcode)));
  const auto append_length = [&out, &payload](unsigned bytes) {
    for (unsigned i = bytes; i > 0; --i)
      out.push_back(static_cast<char>(static_cast<std::uint64_t>(payload.size()) >> (8 * (i - 1)) & 0xFF));
  };
  if (payload.size() < kLength16) {
    append_length(1);
  } else if (payload.size() <= 0xFFFF) {
    out.push_back(static_cast<char>(kLength16));
    append_length(2);
  } else {
    out.push_back(static_cast<char>(kLength64));
    append_length(8);
  }
  out.append(payload);
}

void append_close(std::uint16_t code, std::string_view reason, std::string& out) {
  if (code == close_code::kNone) return append_frame(Opcode::kClose, {}, out);
  std::string payload = {static_cast<char>(code >> 8), static_cast<char>(code & 0xFF)};
  payload.append(reason.substr(0, kMostControlBytes - 2));
  append_frame(Opcode::kClose, payload, out);
}

std::string FrameReader::take_payload() { return std::exchange(payload_, {}); }

FrameReader::State FrameReader::failed(std::uint16_t code) noexcept {
  failed_ = true;
  code_ = code;
  return State::kFailed;
}

std::size_t FrameReader::head_length() const noexcept {
  if (head_size_ < 2) return 2;
  const std::uint8_t length = head_[1] & 0x7F;
  return 2 + (length == kLength16 ? 2U : length == kLength64 ? 8U : 0U) + 4;
}

// True when it is complete.
bool FrameReader::read_head(std::string_view bytes, std::size_t& taken) {
  while (head_size_ < head_length()) {
    if (taken == bytes.size()) return false;
    head_[head_size_++] = static_cast<std::uint8_t>(bytes[taken++]);
    // What cannot become a frame of a client is not waited for.
    if (head_size_ == 2 && (head_[1] & kMasked) == 0) return true;
  }
  return true;
}

// False: code_ says why not.
bool FrameReader::accept_head() {
  const auto opcode = static_cast<Opcode>(head_[0] & 0x0F);
  const bool last = (head_[0] & kFin) != 0;
  code_ = close_code::kProtocolError;
  if ((head_[0] & kReserved) != 0 || (head_[1] & kMasked) == 0) return false;
  left_ = head_[1] & 0x7F;
  if (left_ >= kLength16) {
    const std::size_t bytes = left_ == kLength16 ? 2 : 8;
    left_ = 0;
    for (std::size_t i = 0; i < bytes; ++i) left_ = left_ << 8 | head_[2 + i];
    // A length has one way to be written.
    if (left_ < kLength16 || (bytes == 8 && (left_ <= 0xFFFF || left_ >> 63 != 0))) return false;
  }
  switch (opcode) {
    case Opcode::kContinuation:
      if (!in_message_) return false;
      break;
    case Opcode::kText:
    case Opcode::kBinary:
      if (in_message_) return false;
      in_message_ = true;
      text_ = opcode == Opcode::kText;
      break;
    case Opcode::kClose:
    case Opcode::kPing:
    case Opcode::kPong:
      return last && left_ <= kMostControlBytes;
    default:
      return false;
  }
  if (left_ > max_message_bytes_ - message_.size()) {
    code_ = close_code::kTooBig;
    return false;
  }
  return true;
}

FrameReader::State FrameReader::read_close() {
  closed_ = true;
  code_ = close_code::kNone;
  payload_.clear();
  if (control_.empty()) return State::kClose;
  if (control_.size() == 1) return failed(close_code::kProtocolError);
  code_ = static_cast<std::uint16_t>(static_cast<unsigned char>(control_[0]) << 8 |
                                     static_cast<unsigned char>(control_[1]));
  if (!may_be_sent(code_)) return failed(close_code::kProtocolError);
  payload_ = control_.substr(2);
  if (!is_valid_utf8(payload_)) return failed(close_code::kBadText);
  return State::kClose;
}

FrameReader::State FrameReader::end_frame() {
  const auto opcode = static_cast<Opcode>(head_[0] & 0x0F);
  const bool last = (head_[0] & kFin) != 0;
  head_size_ = 0;
  in_payload_ = false;
  if (is_control(opcode)) {
    if (opcode == Opcode::kClose) return read_close();
    payload_ = std::exchange(control_, {});
    return opcode == Opcode::kPing ? State::kPing : State::kPong;
  }
  if (!last) return State::kNeedMore;
  in_message_ = false;
  payload_ = std::exchange(message_, {});
  if (text_ && !is_valid_utf8(payload_)) return failed(close_code::kBadText);
  return text_ ? State::kText : State::kBinary;
}

FrameReader::State FrameReader::consume(std::string_view bytes, std::size_t& taken) {
  taken = 0;
  if (failed_) return State::kFailed;
  if (closed_) return State::kClose;
  for (;;) {
    if (!in_payload_) {
      if (!read_head(bytes, taken)) return State::kNeedMore;
      if (!accept_head()) return failed(code_);
      in_payload_ = true;
      mask_at_ = 0;
    }
    const std::size_t length = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size() - taken));
    std::string& into = is_control(static_cast<Opcode>(head_[0] & 0x0F)) ? control_ : message_;
    const std::size_t begin = into.size();
    into.append(bytes.substr(taken, length));
    const std::uint8_t* mask = head_.data() + head_length() - 4;
    for (std::size_t i = begin; i < into.size(); ++i)
      into[i] = static_cast<char>(static_cast<std::uint8_t>(into[i]) ^ mask[mask_at_++ % 4]);
    taken += length;
    left_ -= length;
    if (left_ > 0) return State::kNeedMore;
    const State state = end_frame();
    if (state != State::kNeedMore) return state;
  }
}

bool has_token(std::string_view value, std::string_view token) noexcept {
  while (!value.empty()) {
    std::string_view one = value.substr(0, value.find(','));
    value.remove_prefix(std::min(value.size(), one.size() + 1));
    while (one.starts_with(' ') || one.starts_with('\t')) one.remove_prefix(1);
    while (one.ends_with(' ') || one.ends_with('\t')) one.remove_suffix(1);
    if (equal_names(one, token)) return true;
  }
  return false;
}

Status check_upgrade(const Request& request) {
  const auto wrong = [](std::string message) { return fail(ErrorCode::kInvalidInput, std::move(message)); };
  if (request.method != Method::kGet || request.minor_version < 1)
    return wrong("A WebSocket begins with a GET of HTTP/1.1.");
  if (!has_token(request.header("upgrade"), "websocket") ||
      !has_token(request.header("connection"), "upgrade"))
    return wrong(
        "This is for WebSockets: it needs the headers \"Connection: Upgrade\" and \"Upgrade: websocket\".");
  if (request.header("sec-websocket-version") != "13")
    return fail(ErrorCode::kUnsupported, "WebSockets of version 13 are spoken here (Sec-WebSocket-Version).");
  const std::optional<std::string> key = decode_base64(request.header("sec-websocket-key"));
  if (!key || key->size() != 16) return wrong("Sec-WebSocket-Key has to be 16 bytes in base64.");
  if (!request.body.empty()) return wrong("The request that begins a WebSocket has no body.");
  return {};
}

std::string accept_key(std::string_view key) {
  std::string text(key);
  text += "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";  // RFC 6455 section 1.3
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  WAYBILL_CHECK(::EVP_Digest(text.data(), text.size(), digest.data(), &size, ::EVP_sha1(), nullptr) == 1);
  return base64(std::as_bytes(std::span(digest.data(), size)));
}

}  // namespace waybill::http
