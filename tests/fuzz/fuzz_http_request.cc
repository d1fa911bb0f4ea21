// HTTP requests: the first byte says in pieces of which size the rest comes. Cut into pieces or whole, it is
// the same.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "http/request_parser.h"

namespace {

using waybill::http::Request;
using waybill::http::RequestParser;

std::vector<std::string> read_all(std::string_view bytes, std::size_t step) {
  std::vector<std::string> read;
  Request request;
  RequestParser parser(request, {.max_header_bytes = 300, .max_body_bytes = 100});
  std::size_t begin = 0, given = 0;
  while (given < bytes.size()) {
    given = std::min(bytes.size(), given + step);
    for (;;) {
      const std::string piece(bytes.substr(begin, given - begin));
      std::size_t taken = 0;
      const RequestParser::State state = parser.consume(piece, taken);
      WAYBILL_CHECK(taken <= piece.size());
      begin += taken;
      if (state == RequestParser::State::kHeaderDone) continue;
      if (state == RequestParser::State::kNeedMore) break;
      if (state == RequestParser::State::kFailed) {
        WAYBILL_CHECK(parser.failure().status >= 400);
        read.push_back(std::to_string(parser.failure().status));
        return read;
      }
      std::string told = std::string(to_string(request.method)) + " " + std::string(request.target);
      for (const auto& header : request.headers) {
        told.append("\n").append(header.name).append(": ").append(header.value);
        WAYBILL_CHECK(header.value.find('\n') == std::string_view::npos &&
                      header.name.find('\n') == std::string_view::npos);
      }
      WAYBILL_CHECK(request.body.size() <= 100);
      read.push_back(told + "\n\n" + request.body);
      std::string value;
      (void)waybill::http::query_parameter(request.query, "a", value);
      parser.start_next();
    }
  }
  return read;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<std::string> whole = read_all(bytes, bytes.size());
  const std::vector<std::string> pieces = read_all(bytes, std::size_t{1} + data[0] % 64);
  // A failure may be seen later when the bytes come later, never otherwise.
  WAYBILL_CHECK(whole == pieces);
  return 0;
}
