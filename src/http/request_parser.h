// From bytes to Request: HTTP/1.1 as RFC 9112 has it, strict where leniency smuggles requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "http/request.h"

namespace waybill::http {

struct ParserLimits {
  std::size_t max_header_bytes = 16U << 10;  // request line and headers together
  std::uint64_t max_body_bytes = 10U << 20;
};

// What is wrong with a request, and what to answer. The connection is closed after it: where the next request
// would begin is no longer certain.
struct ParseFailure {
  unsigned status = 400;
  std::string_view code;     // "header_too_large"; a literal
  std::string_view message;  // a sentence that says what to change; a literal
};

// Reads one request after another from a byte stream. Boost.Beast's parser reads the grammar; on top of it
// these are refused: Content-Length twice (also with equal values) or beside Transfer-Encoding, a
// Transfer-Encoding other than "chunked", twice, or in HTTP/1.0, a missing or repeated Host in HTTP/1.1, what
// can be no host, a target that is no absolute path, control characters. Not thread-safe.
class RequestParser {
 public:
  enum class State : std::uint8_t {
    kNeedMore,    // all bytes given so far belong to a request that goes on
    kHeaderDone,  // once a request, when there is a body still to come: time for "100 Continue"
    kDone,        // `request` is complete; further bytes belong to the next one
    kFailed,      // see failure()
  };

  RequestParser(Request& request, const ParserLimits& limits);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  // Takes bytes from the front and says how many; those not taken are to be given again, with what came after
  // them. A head is taken only when all of it is there.
  State consume(std::string_view bytes, std::size_t& taken);

  [[nodiscard]] const ParseFailure& failure() const noexcept;
  [[nodiscard]] bool header_done() const noexcept;
  [[nodiscard]] bool expects_continue() const noexcept;
  // The Content-Length, once the header is done; 0: none, or a body in chunks.
  [[nodiscard]] std::uint64_t announced_body_bytes() const noexcept;

  void start_next();  // also clears the request

 private:
  struct Grammar;
  Request& request_;
  ParserLimits limits_;
  std::unique_ptr<Grammar> grammar_;
};

}  // namespace waybill::http
