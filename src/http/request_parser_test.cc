#include "http/request_parser.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace waybill::http {
namespace {

using State = RequestParser::State;

struct Read {
  State state = State::kNeedMore;
  std::size_t taken = 0;
};

// Gives the bytes in pieces of `step`, as a connection does: what was not taken comes again with the next
// piece.
Read read_in_steps(RequestParser& parser, std::string_view bytes, std::size_t step) {
  Read read;
  std::size_t given = 0;
  while (given < bytes.size()) {
    given = std::min(bytes.size(), given + step);
    // A copy of its own: a parser that keeps views of the input shows up under the address sanitizer.
    const std::string piece(bytes.substr(read.taken, given - read.taken));
    std::size_t taken = 0;
    do {
      std::size_t now = 0;
      read.state = parser.consume(std::string_view(piece).substr(taken), now);
      taken += now;
    } while (read.state == State::kHeaderDone);
    read.taken += taken;
    if (read.state != State::kNeedMore) return read;
  }
  return read;
}

constexpr std::string_view kPost =
    "POST /v1/route?explain=1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    "X-Empty:\r\nContent-Length: 16\r\n\r\n{\"prompt\": \"hi\"}";
constexpr std::string_view kChunked =
    "POST /route HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;name=value\r\nhello\r\n6\r\n "
    "world\r\n0\r\n"
    "X-Trailer: x\r\n\r\n";

TEST(RequestParser, ReadsTheSameInPiecesOfAnySize) {
  for (std::size_t step = 1; step <= kPost.size(); ++step) {
    SCOPED_TRACE(step);
    Request request;
    RequestParser parser(request, {});
    const Read read = read_in_steps(parser, kPost, step);
    ASSERT_EQ(read.state, State::kDone);
    EXPECT_EQ(read.taken, kPost.size());
    EXPECT_EQ(request.method, Method::kPost);
    EXPECT_EQ(request.target, "/v1/route?explain=1");
    EXPECT_EQ(request.path, "/v1/route");
    EXPECT_EQ(request.query, "explain=1");
    EXPECT_EQ(request.header("content-type"), "application/json");
    EXPECT_EQ(request.header("x-empty"), "");
    EXPECT_EQ(request.headers.size(), 4U);
    EXPECT_EQ(request.body, R"({"prompt": "hi"})");
    EXPECT_TRUE(request.keep_alive);
  }
}

TEST(RequestParser, PutsChunksTogether) {
  for (std::size_t step = 1; step <= kChunked.size(); ++step) {
    SCOPED_TRACE(step);
    Request request;
    RequestParser parser(request, {});
    const Read read = read_in_steps(parser, kChunked, step);
    ASSERT_EQ(read.state, State::kDone);
    EXPECT_EQ(read.taken, kChunked.size());
    EXPECT_EQ(request.body, "hello world");
    EXPECT_EQ(request.header("x-trailer"), "") << "trailers are not headers";
  }
}

TEST(RequestParser, TakesTheWholeUrlThatClientsOfAProxySend) {
  for (const auto& [url, target, path, query] : std::vector<std::array<std::string_view, 4>>{
           {"http://a:8000/v1/route?explain=1", "/v1/route?explain=1", "/v1/route", "explain=1"},
           {"HTTPS://a/", "/", "/", ""},
           {"http://a", "/", "/", ""},
           {"/v1/route?next=http://b/c", "/v1/route?next=http://b/c", "/v1/route", "next=http://b/c"}}) {
    Request request;
    RequestParser parser(request, {});
    const std::string bytes = "GET " + std::string(url) + " HTTP/1.1\r\nHost: a\r\nX-B: c\r\n\r\n";
    EXPECT_EQ(read_in_steps(parser, bytes, 1).state, State::kDone) << url;
    EXPECT_EQ(request.target, target);
    EXPECT_EQ(request.path, path);
    EXPECT_EQ(request.query, query);
    EXPECT_EQ(request.header("x-b"), "c");
  }
}

TEST(RequestParser, LeavesTheNextRequestAlone) {
  const std::string both = std::string(kPost) + std::string(kChunked);
  Request request;
  RequestParser parser(request, {});
  const Read first = read_in_steps(parser, both, both.size());
  ASSERT_EQ(first.state, State::kDone);
  EXPECT_EQ(first.taken, kPost.size());
  parser.start_next();
  const Read second = read_in_steps(parser, std::string_view(both).substr(first.taken), both.size());
  ASSERT_EQ(second.state, State::kDone);
  EXPECT_EQ(request.body, "hello world");
  EXPECT_EQ(request.path, "/route");
}

struct Refused {
  const char* name;
  std::string bytes;
  unsigned status;
  std::string_view code;
};

TEST(RequestParser, RefusesWhatIsNotARequestOrSmugglesOne) {
  const std::string host = "Host: a\r\n";
  const std::vector<Refused> refused = {
      {"length twice", "POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", 400,
       "bad_content_length"},
      {"lengths that differ",
       "POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\na", 400,
       "bad_content_length"},
      {"a list of lengths", "POST / HTTP/1.1\r\n" + host + "Content-Length: 1, 1\r\n\r\na", 400,
       "bad_content_length"},
      {"length that is no number", "POST / HTTP/1.1\r\n" + host + "Content-Length: +1\r\n\r\na", 400,
       "bad_content_length"},
      {"length that is negative", "POST / HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n", 400,
       "bad_content_length"},
      {"length past 64 bits",
       "POST / HTTP/1.1\r\n" + host + "Content-Length: 99999999999999999999999\r\n\r\n", 400,
       "bad_content_length"},
      {"length, then chunked",
       "POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
       "bad_transfer_encoding"},
      {"chunked, then length",
       "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n", 400,
       "bad_content_length"},
      {"another coding", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
       400, "bad_transfer_encoding"},
      {"a coding that hides", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: xchunked\r\n\r\n", 400,
       "bad_transfer_encoding"},
      {"chunked twice",
       "POST / HTTP/1.1\r\n" + host +
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       400, "bad_transfer_encoding"},
      {"chunked in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
       "bad_transfer_encoding"},
      {"a space before the colon", "POST / HTTP/1.1\r\n" + host + "Content-Length : 1\r\n\r\na", 400,
       "malformed_request"},
      {"bare LF", "GET / HTTP/1.1\nHost: a\n\n\r\n\r\n", 400, "malformed_request"},
      {"bare LF in the headers", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400, "malformed_request"},
      {"a folded line", "GET / HTTP/1.1\r\n" + host + "X: a\r\n b\r\n\r\n", 400, "malformed_request"},
      {"bare CR in a value", "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", 400, "malformed_request"},
      {"NUL in a value", std::string("GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n", 29), 400, "malformed_request"},
      {"no host", "GET / HTTP/1.1\r\nX: a\r\n\r\n", 400, "bad_host"},
      {"two hosts", "GET / HTTP/1.1\r\n" + host + host + "\r\n", 400, "bad_host"},
      {"a host with a space", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "bad_host"},
      {"a host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, "bad_host"},
      {"a host with a user", "GET / HTTP/1.0\r\nHost: a@b\r\n\r\n", 400, "bad_host"},
      {"a host beyond ASCII", "GET / HTTP/1.1\r\nHost: \xc3\xa4\r\n\r\n", 400, "bad_host"},
      {"no path", "GET ftp://a/ HTTP/1.1\r\n" + host + "\r\n", 400, "bad_target"},
      {"a URL of nobody", "GET http:///health HTTP/1.1\r\n" + host + "\r\n", 400, "bad_target"},
      {"another version", "GET / HTTP/2.0\r\n" + host + "\r\n", 505, "bad_version"},
      {"not HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "malformed_request"},
      {"a chunk size that is no number",
       "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", 400, "bad_chunk"},
      {"a chunk size with two numbers",
       "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n1 1\r\na\r\n0\r\n\r\n", 400,
       "bad_chunk"},
      {"a chunk longer than its size",
       "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n", 400,
       "bad_chunk"},
  };
  for (const Refused& each : refused) {
    SCOPED_TRACE(each.name);
    Request request;
    RequestParser parser(request, {});
    const Read read = read_in_steps(parser, each.bytes, each.bytes.size());
    ASSERT_EQ(read.state, State::kFailed);
    EXPECT_EQ(parser.failure().status, each.status);
    EXPECT_EQ(parser.failure().code, each.code);
  }
}

TEST(RequestParser, TakesEveryHost) {
  for (const std::string_view host : {"", "a", "a.example:8000", "[::1]:80", "[fe80::1%25eth0]", "127.0.0.1",
                                      "xn--bcher-kva.example", "a_b-c~d", "a%20b"}) {
    Request request;
    RequestParser parser(request, {});
    const std::string bytes = "GET / HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n";
    EXPECT_EQ(read_in_steps(parser, bytes, bytes.size()).state, State::kDone) << host;
  }
}

TEST(RequestParser, HoldsItsLimits) {
  const ParserLimits limits = {.max_header_bytes = 100, .max_body_bytes = 10};
  const auto failure = [&limits](const std::string& bytes, std::size_t step) {
    Request request;
    RequestParser parser(request, limits);
    const Read read = read_in_steps(parser, bytes, step);
    return read.state == State::kFailed ? std::string(parser.failure().code) : std::string("none");
  };
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{100'000}}) {
    SCOPED_TRACE(step);
    EXPECT_EQ(failure("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(200, 'x') + "\r\n\r\n", step),
              "header_too_large");
    EXPECT_EQ(failure("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(2000, 'x'), step), "header_too_large");
    EXPECT_EQ(failure("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n12345678901", step),
              "body_too_large");
    EXPECT_EQ(failure("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n1234567890", step), "none");
    EXPECT_EQ(failure("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                      "chunked\r\n\r\n6\r\n123456\r\n5\r\n12345\r\n0\r\n\r\n",
                      step),
              "body_too_large");
  }
}

TEST(RequestParser, TellsOnceThatTheHeadersAreThere) {
  Request request;
  RequestParser parser(request, {});
  const std::string_view head =
      "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
  std::size_t taken = 0;
  EXPECT_EQ(parser.consume(head, taken), State::kHeaderDone);
  EXPECT_EQ(taken, head.size());
  EXPECT_TRUE(parser.expects_continue());
  EXPECT_EQ(parser.consume({}, taken), State::kNeedMore);
  EXPECT_EQ(parser.consume("a", taken), State::kNeedMore);
  EXPECT_EQ(parser.consume("b", taken), State::kDone);
  EXPECT_EQ(request.body, "ab");
}

TEST(RequestParser, KnowsWhoWantsToStay) {
  const auto keep_alive = [](const std::string& bytes) {
    Request request;
    RequestParser parser(request, {});
    EXPECT_EQ(read_in_steps(parser, bytes, bytes.size()).state, State::kDone);
    return request.keep_alive;
  };
  EXPECT_TRUE(keep_alive("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_FALSE(keep_alive("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
  EXPECT_FALSE(keep_alive("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(keep_alive("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
}

TEST(QueryParameter, IsDecoded) {
  std::string value;
  EXPECT_TRUE(query_parameter("a=1&name=x%20y%2B+z&b", "name", value));
  EXPECT_EQ(value, "x y+ z");
  EXPECT_TRUE(query_parameter("a=1&b", "b", value));
  EXPECT_EQ(value, "");
  EXPECT_FALSE(query_parameter("a=1", "b", value));
  EXPECT_TRUE(query_parameter("a=%zz%4", "a", value));
  EXPECT_EQ(value, "%zz%4");
}

}  // namespace
}  // namespace waybill::http
