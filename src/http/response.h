// One HTTP response as a handler gives it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace waybill::http {

struct Response {
  unsigned status = 200;
  std::string_view content_type = "application/json";  // a literal; empty: no body
  std::string headers;  // more of them, each "name: value\r\n", values checked by who adds them
  std::string body;
  bool close = false;  // the connection is not kept

  // A value with a line break or another control character in it is left out: no response splitting.
  void add_header(std::string_view name, std::string_view value);
  void add_header(std::string_view name, std::uint64_t value);
  void add_header(std::string_view name, double value, int decimals);
  void clear();
};

[[nodiscard]] std::string_view reason_phrase(unsigned status) noexcept;  // "Not Found"

// How the end of a body is told.
enum class Framing : std::uint8_t {
  kLength,      // Content-Length: the body is there whole
  kChunked,     // RFC 9112 section 7.1: it comes in pieces
  kUntilClose,  // likewise, to a client of HTTP/1.0: the connection's end is its end
};

struct WriteOptions {
  std::string_view date;  // "Sun, 06 Nov 1994 08:49:37 GMT"
  Framing framing = Framing::kLength;
  bool head_only = false;  // the answer to HEAD: what GET would say, without the body
  bool keep_alive = true;
  int minor_version = 1;  // of the request
};

// Appends the response's bytes to `out`; the head alone where the body comes in pieces.
void write_response(const Response& response, const WriteOptions& options, std::string& out);

// Appends one piece of a chunked body. An empty piece would be its end: it is left out.
void write_chunk(std::string_view piece, std::string& out);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// The date of HTTP headers (RFC 9110 section 5.6.7) for seconds since 1970.
[[nodiscard]] std::string http_date(long long unix_seconds);

}  // namespace waybill::http
