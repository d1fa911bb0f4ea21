#include "http/client_connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/pending.h"

namespace waybill::http {
namespace {

constexpr std::size_t kKeptBytes = 16U << 10;    // larger buffers are given back between responses
constexpr std::size_t kJoinedBytes = 64U << 10;  // a body up to this is sent in one piece with its head

// A descriptor until a stream owns it.
class Descriptor {
 public:
  explicit Descriptor(int descriptor) noexcept : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return descriptor_; }
  int release() noexcept { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

}  // namespace

std::string_view to_string(ClientStage stage) noexcept {
  switch (stage) {
    case ClientStage::kResolve:
      return "resolve";
    case ClientStage::kConnect:
      return "connect";
    case ClientStage::kTls:
      return "tls";
    case ClientStage::kSend:
      return "send";
    case ClientStage::kHeaders:
      return "headers";
    case ClientStage::kBody:
      return "body";
  }
  return "unknown";
}

std::string Origin::authority() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  std::string text = ipv6 ? "[" + host + "]" : host;
  if (port != (tls ? 443 : 80)) text += fmt::format(":{}", port);
  return text;
}

std::string Origin::target_prefix() const {
  return proxy_host.empty() || tls ? std::string() : "http://" + authority();
}

ClientConnection::ClientConnection(EventLoop& loop, Resolver& resolver, std::shared_ptr<const Origin> origin)
    : loop_(loop),
      resolver_(resolver),
      origin_(std::move(origin)),
      parser_(head_, ResponseLimits{}),
      deadline_(loop, [this] { expire(); }) {}

ClientConnection::~ClientConnection() = default;

void ClientConnection::expire() {
  expired_ = true;
  if (stream_) stream_->cancel();
  if (wake_) std::exchange(wake_, nullptr)();
}

void ClientConnection::cancel() {
  cancelled_ = true;
  if (stream_) stream_->cancel();
  if (wake_) std::exchange(wake_, nullptr)();
}

void ClientConnection::enter(ClientStage stage, TimePoint deadline) {
  stage_ = stage;
  expired_ = false;
  deadline_.set(deadline);
}

std::unexpected<ClientError> ClientConnection::failure(ClientFault fault, std::string message) const {
  const bool ended = fault == ClientFault::kClosed && !cancelled_ && !expired_;
  if (cancelled_) {
    fault = ClientFault::kCancelled;
    message = "cancelled";
  } else if (expired_) {
    fault = ClientFault::kTimeout;
  }
  return std::unexpected(ClientError{stage_, fault, std::move(message), ended && reused_ && !answered_});
}

Task<ClientResult<Addresses>> ClientConnection::resolve(TimePoint deadline) {
  const std::string& host = origin_->proxy_host.empty() ? origin_->host : origin_->proxy_host;
  const std::uint16_t port = origin_->proxy_host.empty() ? origin_->port : origin_->proxy_port;
  enter(ClientStage::kResolve,
        std::min(deadline, std::chrono::steady_clock::now() + origin_->resolve_timeout));
  // Shared with a lookup that may end after this has given up on it.
  auto answer = std::make_shared<Pending<Result<Addresses>>>();
  auto done = [answer](Result<Addresses> found) { answer->set(std::move(found)); };
  std::optional<Result<Addresses>> found = resolver_.resolve(host, port, loop_, std::move(done));
  if (!found) {
    wake_ = [answer] {
      answer->set(fail(ErrorCode::kDeadlineExceeded, "the name was not resolved in time"));
    };
    Result<Addresses> late = co_await answer->get();
    wake_ = nullptr;
    found.emplace(std::move(late));
  }
  deadline_.clear();
  if (!*found) co_return failure(ClientFault::kRefused, std::move(found->error().message));
  co_return std::move(**found);
}

Task<ClientResult<int>> ClientConnection::connect(Addresses addresses, TimePoint deadline) {
  std::string why;
  for (const auto& address : addresses) {
    if (origin_->may_connect && !origin_->may_connect(address.address())) {
      why = fmt::format("{} is an address that may not be called", address.address().to_string());
      continue;
    }
    enter(ClientStage::kConnect,
          std::min(deadline, std::chrono::steady_clock::now() + origin_->connect_timeout));
    Descriptor descriptor(
        ::socket(address.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (descriptor.get() < 0) {
      why = std::strerror(errno);
      continue;
    }
    const int on = 1;
    (void)::setsockopt(descriptor.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const int started = ::connect(descriptor.get(), address.data(), static_cast<socklen_t>(address.size()));
    if (started == 0) co_return descriptor.release();
    int error = errno;
    if (error == EINPROGRESS) {
      stream_.emplace(loop_.reactor(), descriptor.get(), nullptr);
      const int connecting = descriptor.release();
      if (!cancelled_) (void)co_await stream_->wait(IoState::kWantWrite);
      socklen_t size = sizeof error;
      if (::getsockopt(connecting, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
      if (!expired_ && !cancelled_ && error == 0) co_return -1;  // stream_ has it
      stream_.reset();
    }
    if (cancelled_) break;
    why = expired_ ? fmt::format("no connection to {} within the time for it", address.address().to_string())
                   : std::strerror(error);
    if (std::chrono::steady_clock::now() >= deadline) break;
  }
  resolver_.forget(origin_->proxy_host.empty() ? origin_->host : origin_->proxy_host);
  co_return failure(ClientFault::kRefused, std::move(why));
}

Task<ClientResult<void>> ClientConnection::open(TimePoint deadline) {
  if (stream_) co_return ClientResult<void>{};
  if (cancelled_) co_return failure(ClientFault::kCancelled, {});
  ClientResult<Addresses> addresses = co_await resolve(deadline);
  if (!addresses) co_return std::unexpected(std::move(addresses.error()));
  ClientResult<int> connected = co_await connect(std::move(*addresses), deadline);
  if (!connected) co_return std::unexpected(std::move(connected.error()));
  if (*connected >= 0) stream_.emplace(loop_.reactor(), *connected, nullptr);
  ClientResult<void> done;
  if (origin_->tls && !origin_->proxy_host.empty()) done = co_await tunnel(deadline);
  if (done && origin_->tls) done = co_await shake_hands(deadline);
  deadline_.clear();
  if (!done) stream_.reset();
  co_return done;
}

Task<ClientResult<void>> ClientConnection::tunnel(TimePoint deadline) {
  const std::string authority = fmt::format(
      "{}:{}", origin_->host.find(':') != std::string::npos ? "[" + origin_->host + "]" : origin_->host,
      origin_->port);
  std::string request = fmt::format("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n", authority);
  if (!origin_->proxy_authorization.empty())
    request += fmt::format("Proxy-Authorization: {}\r\n", origin_->proxy_authorization);
  request += "\r\n";
  const TimePoint until = std::min(deadline, std::chrono::steady_clock::now() + origin_->connect_timeout);
  ClientResult<void> sent = co_await send(request, {}, until);
  stage_ = ClientStage::kConnect;
  if (!sent) co_return sent;
  // The answer to CONNECT has no body, whatever it says (RFC 9110 section 9.3.6).
  ClientResult<void> answered = co_await read_head(until);
  stage_ = ClientStage::kConnect;
  if (!answered) co_return answered;
  if (head_.status / 100 != 2)
    co_return failure(ClientFault::kRefused, fmt::format("the proxy answered {}", head_.status));
  if (in_begin_ != in_.size())
    co_return failure(ClientFault::kMalformed, "the proxy sent more than an answer");
  co_return ClientResult<void>{};
}

Task<ClientResult<void>> ClientConnection::shake_hands(TimePoint deadline) {
  enter(ClientStage::kTls, std::min(deadline, std::chrono::steady_clock::now() + origin_->tls_timeout));
  const int descriptor = stream_->release();
  ssl_st* session = origin_->tls_context->new_session(descriptor, origin_->host);
  stream_.emplace(loop_.reactor(), descriptor, session);
  for (;;) {
    const IoState state = stream_->handshake();
    if (state == IoState::kDone) co_return ClientResult<void>{};
    if (state == IoState::kClosed || state == IoState::kFailed)
      co_return failure(ClientFault::kRefused, tls_failure(session));
    if (!cancelled_) (void)co_await stream_->wait(state);
    if (expired_ || cancelled_) co_return failure(ClientFault::kTimeout, "TLS was not agreed on in time");
  }
}

Task<ClientResult<void>> ClientConnection::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const IoResult put = stream_->write(bytes.data(), bytes.size());
    if (put.state == IoState::kDone) {
      bytes.remove_prefix(put.bytes);
      continue;
    }
    if (put.state == IoState::kClosed || put.state == IoState::kFailed)
      co_return failure(ClientFault::kClosed, "the connection ended while the request was sent");
    if (!cancelled_) (void)co_await stream_->wait(put.state);
    if (expired_ || cancelled_) co_return failure(ClientFault::kTimeout, "the request was not taken in time");
  }
  co_return ClientResult<void>{};
}

Task<ClientResult<void>> ClientConnection::send(std::string_view head, std::string_view body,
                                                TimePoint deadline) {
  enter(ClientStage::kSend, deadline);
  parser_.start_next();
  done_ = false;
  answered_ = false;
  broken_ = true;  // until the response has been read whole
  const bool joined = body.size() <= kJoinedBytes;
  out_.assign(head);
  if (joined) out_.append(body);
  ClientResult<void> sent = co_await write(out_);
  if (sent && !joined) sent = co_await write(body);
  std::string().swap(out_);  // thousands of streams may wait for their answers
  co_return sent;
}

// Waits until something has come, and appends it to in_.
// A connection that waits holds only bytes that have come: they are read into a buffer of the loop.
Task<ClientResult<bool>> ClientConnection::read_more(bool wait_first) {
  if (in_begin_ == in_.size()) {
    in_.clear();
    in_begin_ = 0;
  }
  if (wait_first && !cancelled_) {
    (void)co_await stream_->wait(IoState::kWantRead);
    if (expired_ || cancelled_) co_return failure(ClientFault::kTimeout, "nothing came in time");
  }
  for (;;) {
    const std::span<char> buffer = loop_.read_buffer();
    const IoResult got = stream_->read(buffer.data(), buffer.size());
    if (got.state == IoState::kDone) {
      in_.append(buffer.data(), got.bytes);
      answered_ = true;
      co_return true;
    }
    if (got.state == IoState::kFailed) co_return failure(ClientFault::kClosed, "the connection was reset");
    if (got.state == IoState::kClosed) co_return false;
    if (!cancelled_) (void)co_await stream_->wait(got.state);
    if (expired_ || cancelled_) co_return failure(ClientFault::kTimeout, "nothing came in time");
  }
}

Task<ClientResult<void>> ClientConnection::read_head(TimePoint deadline) {
  enter(ClientStage::kHeaders, deadline);
  body_.clear();
  // An answer takes longer than the way here: a read that finds nothing is saved. In TLS something may have
  // come with what was read before.
  bool wait_first = !origin_->tls && in_begin_ == in_.size();
  for (;;) {
    std::size_t taken = 0;
    const std::string_view bytes = std::string_view(in_).substr(in_begin_);
    const ResponseParser::State state = parser_.consume(bytes, taken, body_);
    in_begin_ += taken;
    if (state == ResponseParser::State::kHeadDone) break;
    if (state != ResponseParser::State::kNeedMore)
      co_return failure(ClientFault::kMalformed, "what came is no HTTP response");
    ClientResult<bool> more = co_await read_more(wait_first);
    wait_first = false;
    if (!more) co_return std::unexpected(std::move(more.error()));
    if (!*more) co_return failure(ClientFault::kClosed, "the connection ended before the response");
  }
  deadline_.clear();
  co_return ClientResult<void>{};
}

Task<ClientResult<std::string_view>> ClientConnection::read_body(TimePoint deadline) {
  if (stage_ != ClientStage::kBody) stage_ = ClientStage::kBody;
  body_.clear();
  if (done_) co_return std::string_view{};
  expired_ = false;
  for (;;) {
    std::size_t taken = 0;
    const std::string_view bytes = std::string_view(in_).substr(in_begin_);
    const ResponseParser::State state = parser_.consume(bytes, taken, body_);
    in_begin_ += taken;
    if (state == ResponseParser::State::kMalformed || state == ResponseParser::State::kTooLarge)
      co_return failure(ClientFault::kMalformed, "the response's body is not well-formed");
    if (state == ResponseParser::State::kDone) {
      done_ = true;
      broken_ = !head_.keep_alive || in_begin_ != in_.size();
    }
    if (done_ || !body_.empty()) break;
    deadline_.set(deadline);
    ClientResult<bool> more = co_await read_more();
    if (!more) co_return std::unexpected(std::move(more.error()));
    if (!*more) {
      if (parser_.end() != ResponseParser::State::kDone)
        co_return failure(ClientFault::kClosed, "the connection ended within the response");
      done_ = true;
      break;
    }
  }
  deadline_.clear();
  co_return std::string_view(body_);
}

bool ClientConnection::is_reusable() const noexcept { return stream_ && done_ && !broken_ && !cancelled_; }

void ClientConnection::start_reuse() noexcept {
  reused_ = true;
  in_.clear();  // all of it was read
  in_begin_ = 0;
  if (in_.capacity() > kKeptBytes) std::string().swap(in_);
  if (body_.capacity() > kKeptBytes) std::string().swap(body_);
}

}  // namespace waybill::http
