// HTTP responses, and what their headers say of limits: the first byte says in pieces of which size the rest
// comes. Cut into pieces or whole, it is the same.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "http/response_parser.h"
#include "upstream/failure.h"
#include "upstream/rate_limit.h"

namespace {

using waybill::http::ResponseHead;
using waybill::http::ResponseParser;
using State = ResponseParser::State;

// A day at most: what is longer is a mistake of the sender's.
void check_time(std::optional<waybill::Duration> time) {
  WAYBILL_CHECK(!time || (*time >= waybill::Duration::zero() && *time <= std::chrono::hours(24)));
}

std::string told(const ResponseHead& head) {
  std::string text = std::to_string(head.status) + (head.keep_alive ? " kept" : " closed");
  for (const auto& header : head.headers) {
    text.append("\n").append(header.name).append(": ").append(header.value);
    WAYBILL_CHECK(header.value.find('\n') == std::string_view::npos);
    check_time(waybill::upstream::parse_reset(header.value));
    const auto rate = waybill::upstream::read_told_rate(header.value, header.value,
                                                        waybill::upstream::parse_reset(header.value));
    if (rate) check_time(rate->reset);
  }
  check_time(waybill::upstream::retry_after(head));
  return text;
}

std::vector<std::string> read_all(std::string_view bytes, std::size_t step) {
  std::vector<std::string> read;
  ResponseHead head;
  ResponseParser parser(head, {.max_header_bytes = 300, .max_body_bytes = 100});
  std::string body, seen;
  std::size_t begin = 0, given = 0;
  while (given < bytes.size()) {
    given = std::min(bytes.size(), given + step);
    for (;;) {
      const std::string piece(bytes.substr(begin, given - begin));
      std::size_t taken = 0;
      const State state = parser.consume(piece, taken, body);
      WAYBILL_CHECK(taken <= piece.size() && body.size() <= 100);
      begin += taken;
      if (state == State::kHeadDone) {
        seen = told(head);
        continue;
      }
      if (state == State::kNeedMore) break;
      if (state != State::kDone) {
        read.push_back(state == State::kTooLarge ? "too large" : "malformed");
        return read;
      }
      read.push_back(seen + "\n\n" + body);
      body.clear();
      parser.start_next();
      if (begin == given) break;
    }
  }
  if (parser.end() == State::kDone) read.push_back(seen + "\n\n" + body);
  return read;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  WAYBILL_CHECK(read_all(bytes, bytes.size()) == read_all(bytes, std::size_t{1} + data[0] % 64));
  return 0;
}
