// A body in chunks (RFC 9112 section 7.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace waybill::http {

// Takes a body apart byte by byte, so that it cannot matter in which pieces it comes. Extensions and trailers
// are read over, and bounded.
class ChunkedBody {
 public:
  enum class State : std::uint8_t { kNeedMore, kDone, kMalformed, kTooLarge };

  explicit ChunkedBody(std::uint64_t max_body_bytes, std::size_t max_framing_bytes)
      : max_body_bytes_(max_body_bytes), max_framing_bytes_(max_framing_bytes) {}

  // Appends data to `body`; `taken` is all of the bytes, or those up to the end of the body.
  State consume(std::string_view bytes, std::size_t& taken, std::string& body);

 private:
  enum class At : std::uint8_t {
    kSize,
    kSizeSpace,
    kExtension,
    kSizeLf,
    kData,
    kDataCr,
    kDataLf,
    kTrailer,
    kTrailerLine,
    kTrailerLf,
    kEndLf
  };

  State framing(char c);
  State end_of_size_line();

  const std::uint64_t max_body_bytes_;
  const std::size_t max_framing_bytes_;
  At at_ = At::kSize;
  std::uint64_t size_ = 0;  // of the chunk, then what is left of it
  std::uint64_t body_bytes_ = 0;
  std::size_t digits_ = 0;
  std::size_t extra_bytes_ = 0;  // of extensions and trailers
};

}  // namespace waybill::http
