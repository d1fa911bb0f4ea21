// From bytes of a server to a response: HTTP/1.1 as RFC 9112 has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "http/request.h"

namespace waybill::http {

// The head of a response, its bytes owned. Reused for all responses of a connection.
struct ResponseHead {
  unsigned status = 0;
  int minor_version = 1;  // of HTTP/1
  bool keep_alive = true;
  std::vector<Header> headers;  // the views point into `bytes`
  std::string bytes;

  // The first header of the name (case does not matter), or an empty view.
  [[nodiscard]] std::string_view header(std::string_view name) const noexcept;
  void clear();
};

struct ResponseLimits {
  std::size_t max_header_bytes = 64U << 10;
  std::uint64_t max_body_bytes = UINT64_MAX >> 8;  // what is read piece by piece needs no other bound
};

// Reads one response after another from a byte stream. Boost.Beast's parser reads the grammar of heads.
// Interim responses (1xx) are skipped. A message whose length could be read in two ways is refused: it would
// be somebody else's answer that comes next. Not thread-safe.
class ResponseParser {
 public:
  enum class State : std::uint8_t {
    kNeedMore,   // all bytes given so far belong to a response that goes on
    kHeadDone,   // once a response, when `head` is complete
    kDone,       // so is the body
    kMalformed,  // nothing more can be read
    kTooLarge,   // likewise
  };

  ResponseParser(ResponseHead& head, const ResponseLimits& limits);
  ~ResponseParser();
  ResponseParser(const ResponseParser&) = delete;
  ResponseParser& operator=(const ResponseParser&) = delete;

  // Takes bytes from the front, says how many, and appends what is of the body to `body`; bytes not taken are
  // to be given again, with what came after them.
  State consume(std::string_view bytes, std::size_t& taken, std::string& body);
  // The connection has ended: kDone where that is the body's end, else kMalformed.
  [[nodiscard]] State end() const noexcept;

  void start_next();  // also clears the head

 private:
  struct Grammar;
  State read_head(std::string_view bytes, std::size_t& taken);

  ResponseHead& head_;
  const ResponseLimits limits_;
  std::unique_ptr<Grammar> grammar_;
};

}  // namespace waybill::http
