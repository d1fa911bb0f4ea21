#include "http/request_parser.h"

#include <algorithm>
#include <optional>

#include <boost/beast/http/basic_parser.hpp>

#include "http/chunked_body.h"

namespace waybill::http {
namespace {

namespace beast = boost::beast::http;
using ErrorCode = boost::system::error_code;
using View = boost::beast::string_view;

std::string_view as_std(View view) noexcept { return {view.data(), view.size()}; }

Method as_method(beast::verb verb) noexcept {
  switch (verb) {
    case beast::verb::get:
      return Method::kGet;
    case beast::verb::head:
      return Method::kHead;
    case beast::verb::post:
      return Method::kPost;
    case beast::verb::put:
      return Method::kPut;
    case beast::verb::patch:
      return Method::kPatch;
    case beast::verb::delete_:
      return Method::kDelete;
    case beast::verb::options:
      return Method::kOptions;
    default:
      return Method::kOther;
  }
}

constexpr ParseFailure kHeaderTooLarge = {
    431, "header_too_large",
    "The request line and headers are larger than this server takes; send fewer "
    "or shorter headers (server.max_header_size)."};
constexpr ParseFailure kBodyTooLarge = {
    413, "body_too_large",
    "The request body is larger than this server takes; send less at once "
    "(server.max_body_size)."};
constexpr ParseFailure kBadLength = {400, "bad_content_length",
                                     "Content-Length must be given once, as a number, and not beside "
                                     "Transfer-Encoding."};
constexpr ParseFailure kBadTransferEncoding = {
    400, "bad_transfer_encoding",
    "Transfer-Encoding must be given once, as \"chunked\", in HTTP/1.1, and not beside "
    "Content-Length."};
constexpr ParseFailure kBadHost = {400, "bad_host",
                                   "An HTTP/1.1 request has exactly one Host header, which is a name or an "
                                   "address, with or without a port."};
constexpr ParseFailure kBadTarget = {400, "bad_target",
                                     "The request target must be a path that begins with \"/\"."};
constexpr ParseFailure kBadVersion = {505, "bad_version", "This server speaks HTTP/1.1 and HTTP/1.0."};
constexpr ParseFailure kBadChunk = {400, "bad_chunk", "The chunked body is not well-formed."};
constexpr ParseFailure kMalformed = {
    400, "malformed_request",
    "This is not a well-formed HTTP/1.1 request (lines end in CRLF, header names are "
    "tokens, values have no control characters)."};

// Looks for the end of a head, a line at a time, from `from` on, which it moves on. A line that ends in a
// bare LF can never become a request: that is said at once, not when the client has waited for an answer.
enum class Head : std::uint8_t { kIncomplete, kComplete, kBroken };
Head find_head_end(std::string_view bytes, std::size_t& from, std::size_t& head_size) {
  if (!bytes.empty() && !(bytes.front() >= 'A' && bytes.front() <= 'Z') &&
      !(bytes.front() >= 'a' && bytes.front() <= 'z')) {
    return Head::kBroken;
  }
  for (;;) {
    const std::size_t line_end = bytes.find('\n', from);
    if (line_end == std::string_view::npos) return Head::kIncomplete;
    // A folded line (RFC 9112 section 5.2) belongs to the header before it for some readers, and not for
    // others.
    if (from > 0 && (bytes[from] == ' ' || bytes[from] == '\t')) return Head::kBroken;
    if (line_end == 0 || bytes[line_end - 1] != '\r') return Head::kBroken;
    if (line_end == from + 1) {  // an empty line
      head_size = line_end + 1;
      return Head::kComplete;
    }
    from = line_end + 1;
  }
}

// Clients that are told of a proxy send the whole URL, and a server must take it (RFC 9112 section 3.2.2).
// Its path with the query, or what was given where it is no such URL.
std::string_view without_authority(std::string_view target) noexcept {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (target.size() <= scheme.size() || !equal_names(target.substr(0, scheme.size()), scheme)) continue;
    const std::size_t end = target.find_first_of("/?#", scheme.size());
    if (end == scheme.size()) return target;  // nobody's
    if (end == std::string_view::npos) return target.substr(scheme.size() - 1, 1);
    return target.substr(end);
  }
  return target;
}

// No byte that cannot stand in a host with a port (RFC 3986 section 3.2.2): who reads the header otherwise
// would see another host there.
bool is_host(std::string_view value) noexcept {
  constexpr std::string_view kMarks = "-._~!$&'()*+,;=%:[]";
  return std::ranges::all_of(value, [kMarks](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

// Stops the grammar with a failure of ours.
ErrorCode stop() { return make_error_code(boost::system::errc::bad_message); }

ParseFailure failure_of(const ErrorCode& error) noexcept {
  if (error == beast::error::header_limit) return kHeaderTooLarge;
  if (error == beast::error::body_limit) return kBodyTooLarge;
  if (error == beast::error::bad_content_length || error == beast::error::multiple_content_length)
    return kBadLength;
  if (error == beast::error::bad_transfer_encoding) return kBadTransferEncoding;
  if (error == beast::error::bad_version) return kBadVersion;
  if (error == beast::error::bad_chunk || error == beast::error::bad_chunk_extension) return kBadChunk;
  return kMalformed;
}

}  // namespace

struct RequestParser::Grammar {
  class Events final : public beast::basic_parser<true> {
   public:
    Events(Request& request, const ParserLimits& limits) : request_(request) {
      header_limit(static_cast<std::uint32_t>(limits.max_header_bytes));
      body_limit(boost::none);
      skip(true);  // it reads heads; the body is read here
    }

    std::optional<ParseFailure> failure;
    const char* head_begin = nullptr;  // of the bytes that are being read, until the head is complete
    bool header_done = false, expects_continue = false;

   private:
    void on_request_impl(beast::verb verb, View /*method*/, View target, int version,
                         ErrorCode& error) override {
      request_.method = as_method(verb);
      request_.minor_version = version % 10;
      request_.target = without_authority(as_std(target));
      if (version != 10 && version != 11) fail(kBadVersion, error);
      if (request_.target.empty() || (request_.target.front() != '/' && request_.target != "*"))
        fail(kBadTarget, error);
    }

    void on_field_impl(beast::field field, View name, View value, ErrorCode& error) override {
      request_.headers.push_back({as_std(name), as_std(value)});
      switch (field) {
        case beast::field::host:
          ++hosts_;
          if (!is_host(as_std(value))) fail(kBadHost, error);
          break;
        case beast::field::content_length:
          if (++lengths_ > 1) fail(kBadLength, error);
          if (std::ranges::find(value, ',') != value.end()) fail(kBadLength, error);
          break;
        case beast::field::transfer_encoding:
          // Once only, and not in HTTP/1.0, which has none: who does not know it would see another body there
          // (RFC 9112 section 6.1).
          if (!equal_names(as_std(value), "chunked") || ++encodings_ > 1 || request_.minor_version < 1)
            fail(kBadTransferEncoding, error);
          break;
        case beast::field::expect:
          expects_continue = equal_names(as_std(value), "100-continue");
          break;
        default:
          break;
      }
    }

    void on_header_impl(ErrorCode& error) override {
      if (request_.minor_version >= 1 ? hosts_ != 1 : hosts_ > 1) return fail(kBadHost, error);
      own_head();
      header_done = true;
    }

    void on_body_init_impl(const boost::optional<std::uint64_t>&, ErrorCode&) override {}
    std::size_t on_body_impl(View, ErrorCode&) override { return 0; }
    void on_chunk_header_impl(std::uint64_t, View, ErrorCode&) override {}
    std::size_t on_chunk_body_impl(std::uint64_t, View, ErrorCode&) override { return 0; }
    void on_response_impl(int, View, int, ErrorCode&) override {}
    void on_finish_impl(ErrorCode&) override {}

    void fail(const ParseFailure& what, ErrorCode& error) {
      if (!failure) failure = what;
      error = stop();
    }

    // The connection's buffer will be used for other bytes while the request lives: the head moves out of it.
    void own_head() {
      const char* end = head_begin;
      const auto reach = [&end](std::string_view view) { end = std::max(end, view.data() + view.size()); };
      reach(request_.target);
      for (const Header& header : request_.headers) {
        reach(header.name);
        reach(header.value);
      }
      request_.head.assign(head_begin, end);
      const auto moved = [this](std::string_view view) {
        if (view.empty()) return std::string_view();
        return std::string_view(request_.head)
            .substr(static_cast<std::size_t>(view.data() - head_begin), view.size());
      };
      request_.target = moved(request_.target);
      for (Header& header : request_.headers) header = {moved(header.name), moved(header.value)};
      const std::size_t question = std::min(request_.target.find('?'), request_.target.size());
      request_.path = request_.target.substr(0, question);
      request_.query = request_.target.substr(std::min(request_.target.size(), question + 1));
    }

    Request& request_;
    unsigned hosts_ = 0, lengths_ = 0, encodings_ = 0;
  };

  std::optional<Events> events;
  ParseFailure failure;
  std::optional<ChunkedBody> chunks;
  std::uint64_t announced = 0, body_left = 0;  // where there is a length
  std::size_t line_begin = 0;                  // in the head: where the line begins that is not complete yet
};

RequestParser::RequestParser(Request& request, const ParserLimits& limits)
    : request_(request), limits_(limits), grammar_(std::make_unique<Grammar>()) {
  start_next();
}

RequestParser::~RequestParser() = default;

void RequestParser::start_next() {
  request_.clear();
  grammar_->events.emplace(request_, limits_);
  grammar_->chunks.reset();
  grammar_->announced = grammar_->body_left = 0;
  grammar_->line_begin = 0;
}

RequestParser::State RequestParser::consume(std::string_view bytes, std::size_t& taken) {
  Grammar::Events& events = *grammar_->events;
  taken = 0;
  const auto failed = [this](const ParseFailure& failure) {
    grammar_->failure = failure;
    return State::kFailed;
  };
  if (!events.header_done) {
    // RFC 9112 section 2.2: empty lines before a request are skipped; some clients send one after a body.
    while (bytes.substr(taken).starts_with("\r\n")) taken += 2;
    const std::string_view head = bytes.substr(taken);
    if (head == "\r") return State::kNeedMore;
    std::size_t head_size = 0;
    // No further than the limit, so that it does not matter how much has come at once.
    const Head found =
        find_head_end(head.substr(0, limits_.max_header_bytes), grammar_->line_begin, head_size);
    if (found == Head::kBroken) return failed(kMalformed);
    if (found == Head::kIncomplete && head.size() >= limits_.max_header_bytes) return failed(kHeaderTooLarge);
    if (found == Head::kIncomplete) return State::kNeedMore;
    // The grammar is given the head alone, so that what it makes of it cannot depend on what follows.
    events.head_begin = head.data();
    ErrorCode error;
    taken += events.put(boost::asio::const_buffer(head.data(), head_size), error);
    if (error) return failed(events.failure ? *events.failure : failure_of(error));
    if (!events.header_done) return failed(kMalformed);
    request_.keep_alive = events.keep_alive();
    if (events.chunked()) {
      grammar_->chunks.emplace(limits_.max_body_bytes, limits_.max_header_bytes);
      return State::kHeaderDone;
    }
    grammar_->announced = grammar_->body_left = events.content_length().value_or(0);
    if (grammar_->body_left > limits_.max_body_bytes) return failed(kBodyTooLarge);
    if (grammar_->body_left == 0) return State::kDone;
    // What is announced is not yet here: memory follows the bytes.
    request_.body.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(grammar_->body_left, 64U << 10)));
    return State::kHeaderDone;
  }
  if (grammar_->chunks) {
    switch (grammar_->chunks->consume(bytes, taken, request_.body)) {
      case ChunkedBody::State::kNeedMore:
        return State::kNeedMore;
      case ChunkedBody::State::kDone:
        return State::kDone;
      case ChunkedBody::State::kMalformed:
        return failed(kBadChunk);
      case ChunkedBody::State::kTooLarge:
        return failed(kBodyTooLarge);
    }
  }
  taken = static_cast<std::size_t>(std::min<std::uint64_t>(grammar_->body_left, bytes.size()));
  request_.body.append(bytes.substr(0, taken));
  grammar_->body_left -= taken;
  return grammar_->body_left == 0 ? State::kDone : State::kNeedMore;
}

const ParseFailure& RequestParser::failure() const noexcept { return grammar_->failure; }
std::uint64_t RequestParser::announced_body_bytes() const noexcept { return grammar_->announced; }
bool RequestParser::header_done() const noexcept { return grammar_->events->header_done; }
bool RequestParser::expects_continue() const noexcept { return grammar_->events->expects_continue; }

}  // namespace waybill::http
