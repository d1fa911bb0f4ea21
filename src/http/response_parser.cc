#include "http/response_parser.h"

#include <algorithm>
#include <optional>

#include <boost/beast/http/basic_parser.hpp>

#include "http/chunked_body.h"

namespace waybill::http {
namespace {

namespace beast = boost::beast::http;
using ErrorCode = boost::system::error_code;
using View = boost::beast::string_view;

constexpr std::size_t kMostChunkFraming = 16U << 10;  // extensions and trailers of a body

std::string_view as_std(View view) noexcept { return {view.data(), view.size()}; }

// A line that begins with a blank goes on with the header before it (RFC 9112, 5.2: such breaks become
// blanks). Left to Beast, the value would lie in its own buffer, which is gone when it is read.
void join_folded_lines(std::string& head) {
  std::size_t at = head.find("\r\n");  // of the status line
  while (at != std::string::npos && (at = head.find("\r\n", at + 2)) != std::string::npos) {
    if (at + 2 < head.size() && (head[at + 2] == ' ' || head[at + 2] == '\t')) head.replace(at, 2, "  ");
  }
}

}  // namespace

std::string_view ResponseHead::header(std::string_view name) const noexcept {
  for (const Header& each : headers) {
    if (equal_names(each.name, name)) return each.value;
  }
  return {};
}

void ResponseHead::clear() {
  status = 0;
  minor_version = 1;
  keep_alive = true;
  headers.clear();
  bytes.clear();
}

struct ResponseParser::Grammar {
  class Events final : public beast::basic_parser<false> {
   public:
    Events(ResponseHead& head, const ResponseLimits& limits) : head_(head) {
      header_limit(static_cast<std::uint32_t>(limits.max_header_bytes));
      body_limit(boost::none);
      skip(true);  // it reads heads; the body is read here
    }
    bool header_done = false;

   private:
    void on_response_impl(int status, View /*reason*/, int version, ErrorCode& /*error*/) override {
      head_.status = static_cast<unsigned>(status);
      head_.minor_version = version % 10;
    }
    void on_field_impl(beast::field field, View name, View value, ErrorCode& error) override {
      head_.headers.push_back({as_std(name), as_std(value)});
      const bool twice = (field == beast::field::content_length && ++lengths_ > 1) ||
                         (field == beast::field::transfer_encoding &&
                          (!equal_names(as_std(value), "chunked") || ++encodings_ > 1));
      if (twice || (lengths_ > 0 && encodings_ > 0))
        error = make_error_code(boost::system::errc::bad_message);
    }
    void on_header_impl(ErrorCode& /*error*/) override { header_done = true; }
    void on_request_impl(beast::verb, View, View, int, ErrorCode&) override {}
    void on_body_init_impl(const boost::optional<std::uint64_t>&, ErrorCode&) override {}
    std::size_t on_body_impl(View, ErrorCode&) override { return 0; }
    void on_chunk_header_impl(std::uint64_t, View, ErrorCode&) override {}
    std::size_t on_chunk_body_impl(std::uint64_t, View, ErrorCode&) override { return 0; }
    void on_finish_impl(ErrorCode&) override {}

    ResponseHead& head_;
    unsigned lengths_ = 0, encodings_ = 0;
  };

  enum class Body : std::uint8_t { kLength, kChunked, kUntilClose };
  std::optional<Events> events;
  std::optional<ChunkedBody> chunks;
  Body kind = Body::kLength;
  std::uint64_t left = 0;    // of kLength, or what kUntilClose may still have
  std::size_t searched = 0;  // of the head, for its end
  bool head_done = false;
};

ResponseParser::ResponseParser(ResponseHead& head, const ResponseLimits& limits)
    : head_(head), limits_(limits), grammar_(std::make_unique<Grammar>()) {
  start_next();
}

ResponseParser::~ResponseParser() = default;

void ResponseParser::start_next() {
  head_.clear();
  grammar_->events.emplace(head_, limits_);
  grammar_->chunks.reset();
  grammar_->searched = 0;
  grammar_->head_done = false;
}

ResponseParser::State ResponseParser::read_head(std::string_view bytes, std::size_t& taken) {
  Grammar& grammar = *grammar_;
  const std::size_t from = grammar.searched < 3 ? 0 : grammar.searched - 3;
  const std::size_t end = bytes.find("\r\n\r\n", from);
  grammar.searched = bytes.size();
  const bool complete = end != std::string_view::npos;
  if ((complete ? end + 4 : bytes.size()) > limits_.max_header_bytes) return State::kTooLarge;
  if (!complete) return State::kNeedMore;
  taken = end + 4;
  // The connection's buffer will be used for other bytes while the head lives.
  head_.bytes.assign(bytes.substr(0, taken));
  join_folded_lines(head_.bytes);
  ErrorCode error;
  grammar.events->put(boost::asio::const_buffer(head_.bytes.data(), head_.bytes.size()), error);
  if (error || !grammar.events->header_done) return State::kMalformed;
  if (head_.status < 200 && head_.status != 101) {  // an interim response; the answer follows
    start_next();
    return State::kNeedMore;
  }
  head_.keep_alive = grammar.events->keep_alive();
  grammar.head_done = true;
  const auto length = grammar.events->content_length();
  if (head_.status == 204 || head_.status == 304 || head_.status == 101) {
    grammar.kind = Grammar::Body::kLength;
    grammar.left = 0;
  } else if (grammar.events->chunked()) {
    grammar.kind = Grammar::Body::kChunked;
    grammar.chunks.emplace(limits_.max_body_bytes, kMostChunkFraming);
  } else if (length) {
    grammar.kind = Grammar::Body::kLength;
    grammar.left = *length;
    if (*length > limits_.max_body_bytes) return State::kTooLarge;
  } else {
    grammar.kind = Grammar::Body::kUntilClose;
    grammar.left = limits_.max_body_bytes;
    head_.keep_alive = false;
  }
  return State::kHeadDone;
}

ResponseParser::State ResponseParser::consume(std::string_view bytes, std::size_t& taken, std::string& body) {
  taken = 0;
  Grammar& grammar = *grammar_;
  if (!grammar.head_done) {
    std::size_t skipped = 0;
    for (;;) {
      std::size_t head_bytes = 0;
      const State state = read_head(bytes.substr(skipped), head_bytes);
      skipped += head_bytes;
      taken = skipped;
      if (state != State::kNeedMore || head_bytes == 0) return state;
    }
  }
  if (grammar.kind == Grammar::Body::kChunked) {
    switch (grammar.chunks->consume(bytes, taken, body)) {
      case ChunkedBody::State::kNeedMore:
        return State::kNeedMore;
      case ChunkedBody::State::kDone:
        return State::kDone;
      case ChunkedBody::State::kMalformed:
        return State::kMalformed;
      case ChunkedBody::State::kTooLarge:
        return State::kTooLarge;
    }
  }
  taken = static_cast<std::size_t>(std::min<std::uint64_t>(grammar.left, bytes.size()));
  body.append(bytes.substr(0, taken));
  grammar.left -= taken;
  if (grammar.kind == Grammar::Body::kUntilClose)
    return taken < bytes.size() ? State::kTooLarge : State::kNeedMore;
  return grammar.left == 0 ? State::kDone : State::kNeedMore;
}

ResponseParser::State ResponseParser::end() const noexcept {
  return grammar_->head_done && grammar_->kind == Grammar::Body::kUntilClose ? State::kDone
                                                                             : State::kMalformed;
}

}  // namespace waybill::http
