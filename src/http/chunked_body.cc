#include "http/chunked_body.h"

#include <algorithm>

namespace waybill::http {
namespace {

constexpr std::size_t kMostDigits = 15;  // of a size, so that it fits into 64 bits

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_text(char c) noexcept { return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F); }

}  // namespace

ChunkedBody::State ChunkedBody::consume(std::string_view bytes, std::size_t& taken, std::string& body) {
  taken = 0;
  while (taken < bytes.size()) {
    if (at_ == At::kData) {
      const std::size_t piece =
          static_cast<std::size_t>(std::min<std::uint64_t>(size_, bytes.size() - taken));
      body.append(bytes.substr(taken, piece));
      taken += piece;
      size_ -= piece;
      if (size_ == 0) at_ = At::kDataCr;
      continue;
    }
    const State state = framing(bytes[taken++]);
    if (state != State::kNeedMore) return state;
  }
  return State::kNeedMore;
}

// One byte that is not data. kNeedMore: go on.
ChunkedBody::State ChunkedBody::framing(char c) {
  const bool cr = c == '\r', lf = c == '\n';
  switch (at_) {
    case At::kSize:
      if (const int digit = hex_digit(c); digit >= 0) {
        if (++digits_ > kMostDigits) return State::kMalformed;
        size_ = size_ * 16 + static_cast<std::uint64_t>(digit);
        return State::kNeedMore;
      }
      if (digits_ == 0) return State::kMalformed;
      if (cr) {
        at_ = At::kSizeLf;
      } else if (c == ';') {
        at_ = At::kExtension;
      } else if (c == ' ' || c == '\t') {
        at_ = At::kSizeSpace;
      } else {
        return State::kMalformed;
      }
      return State::kNeedMore;
    case At::kSizeSpace:  // white space may stand before an extension, or for none; "3 4" is no size
      if (cr) {
        at_ = At::kSizeLf;
      } else if (c == ';') {
        at_ = At::kExtension;
      } else if ((c != ' ' && c != '\t') || ++extra_bytes_ > max_framing_bytes_) {
        return State::kMalformed;
      }
      return State::kNeedMore;
    case At::kExtension:
      if (cr) {
        at_ = At::kSizeLf;
      } else if (!is_text(c) || ++extra_bytes_ > max_framing_bytes_) {
        return State::kMalformed;
      }
      return State::kNeedMore;
    case At::kSizeLf:
      return lf ? end_of_size_line() : State::kMalformed;
    case At::kDataCr:
      at_ = At::kDataLf;
      return cr ? State::kNeedMore : State::kMalformed;
    case At::kDataLf:
      at_ = At::kSize;
      size_ = 0;
      digits_ = 0;
      return lf ? State::kNeedMore : State::kMalformed;
    case At::kTrailer:
      at_ = cr ? At::kEndLf : At::kTrailerLine;
      return cr || is_text(c) ? State::kNeedMore : State::kMalformed;
    case At::kTrailerLine:
      if (cr) {
        at_ = At::kTrailerLf;
      } else if (!is_text(c) || ++extra_bytes_ > max_framing_bytes_) {
        return State::kMalformed;
      }
      return State::kNeedMore;
    case At::kTrailerLf:
      at_ = At::kTrailer;
      return lf ? State::kNeedMore : State::kMalformed;
    case At::kEndLf:
      return lf ? State::kDone : State::kMalformed;
    case At::kData:
      break;
  }
  return State::kMalformed;
}

ChunkedBody::State ChunkedBody::end_of_size_line() {
  body_bytes_ += size_;
  if (size_ > max_body_bytes_ || body_bytes_ > max_body_bytes_) return State::kTooLarge;
  at_ = size_ == 0 ? At::kTrailer : At::kData;
  return State::kNeedMore;
}

}  // namespace waybill::http
