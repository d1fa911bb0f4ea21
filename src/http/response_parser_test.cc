#include "http/response_parser.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace waybill::http {
namespace {

using State = ResponseParser::State;

State read(std::string_view bytes, ResponseHead& head, std::string& body) {
  ResponseParser parser(head, {});
  for (;;) {
    std::size_t taken = 0;
    const State state = parser.consume(bytes, taken, body);
    bytes.remove_prefix(taken);
    if (state != State::kHeadDone) return state;
  }
}

TEST(ResponseParser, ALineThatBeginsWithABlankGoesOnWithTheHeaderBeforeIt) {
  ResponseHead head;
  std::string body;
  EXPECT_EQ(read("HTTP/1.1 429 Slow\r\nRetry-After: Fri,\r\n 31 Dec\r\n\t2100\r\nContent-Length: 2\r\nX: "
                 "a\r\n\r\nok",
                 head, body),
            State::kDone);
  ASSERT_EQ(head.headers.size(), 3U);
  EXPECT_EQ(head.header("retry-after"), "Fri,   31 Dec  \t2100");
  EXPECT_EQ(head.header("x"), "a");
  EXPECT_EQ(body, "ok");
}

TEST(ResponseParser, EveryValueLiesInTheBytesOfTheHead) {
  ResponseHead head;
  std::string body;
  (void)read("HTTP/1.1 200 OK\r\nA: b\r\n c\r\nD:\r\n e\r\nContent-Length: 0\r\n\r\n", head, body);
  ASSERT_EQ(head.headers.size(), 3U);
  for (const Header& each : head.headers) {
    EXPECT_GE(each.value.data(), head.bytes.data()) << each.name;
    EXPECT_LE(each.value.data() + each.value.size(), head.bytes.data() + head.bytes.size()) << each.name;
  }
}

TEST(ResponseParser, TheStatusLineHasNoSecondLine) {
  ResponseHead head;
  std::string body;
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\n more\r\nContent-Length: 0\r\n\r\n", head, body), State::kMalformed);
}

}  // namespace
}  // namespace waybill::http
