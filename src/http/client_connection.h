// One connection to another server: requests out, responses in, one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/ip/address.hpp>

#include "base/clock.h"
#include "http/client_error.h"
#include "http/client_tls.h"
#include "http/deadline.h"
#include "http/event_loop.h"
#include "http/resolver.h"
#include "http/response_parser.h"
#include "http/stream.h"
#include "http/task.h"

namespace waybill::http {

// A way to another server. Immutable, shared by the connections that lead there.
struct Origin {
  bool tls = false;
  std::string host;  // a name or an address, IPv6 without brackets
  std::uint16_t port = 80;
  std::shared_ptr<const ClientTlsContext> tls_context;  // where tls is true
  // An HTTP proxy in between: a tunnel (CONNECT) for TLS, else requests in absolute form.
  std::string proxy_host;  // empty: none
  std::uint16_t proxy_port = 0;
  std::string proxy_authorization;  // "Basic ..."; empty: none
  // Asked of each address that the name was resolved to, right before it is connected to; thread-safe. Not
  // given: any. Without a proxy this is the whole of who is called, whatever a name server says next.
  std::function<bool(const boost::asio::ip::address&)> may_connect;
  Duration resolve_timeout = std::chrono::seconds(2);
  Duration connect_timeout = std::chrono::seconds(2);  // to one of its addresses
  Duration tls_timeout = std::chrono::seconds(3);

  [[nodiscard]] std::string authority() const;  // for Host: "example.com", "[::1]:8000"
  // What stands before the path in a request line: empty but for a proxy without a tunnel.
  [[nodiscard]] std::string target_prefix() const;
};

// Used by its loop's thread only, by one coroutine at a time; cancel() may be called while that one waits.
class ClientConnection {
 public:
  ClientConnection(EventLoop& loop, Resolver& resolver, std::shared_ptr<const Origin> origin);
  ~ClientConnection();
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  // Resolves, connects and agrees on TLS; at once where that was done before.
  Task<ClientResult<void>> open(TimePoint deadline);
  // Sends a request whole. `head` ends in an empty line.
  Task<ClientResult<void>> send(std::string_view head, std::string_view body, TimePoint deadline);
  // Waits for the head of the response.
  Task<ClientResult<void>> read_head(TimePoint deadline);
  // The next bytes of the body, valid until the next call; empty at its end. Waits for the first of them.
  Task<ClientResult<std::string_view>> read_body(TimePoint deadline);

  [[nodiscard]] const ResponseHead& head() const noexcept { return head_; }
  [[nodiscard]] const std::shared_ptr<const Origin>& origin() const noexcept { return origin_; }
  [[nodiscard]] bool is_open() const noexcept { return stream_.has_value(); }

  // The response was read to its end and another request may follow on this connection.
  [[nodiscard]] bool is_reusable() const noexcept;
  // A kept connection on which the other side has sent an end, or anything, as far as the loop has been told.
  [[nodiscard]] bool is_stale() const noexcept { return stream_ && stream_->is_readable(); }
  void start_reuse() noexcept;

  // Ends what waits with kCancelled, and everything that follows.
  void cancel();

 private:
  Task<ClientResult<Addresses>> resolve(TimePoint deadline);
  Task<ClientResult<int>> connect(Addresses addresses, TimePoint deadline);
  Task<ClientResult<void>> tunnel(TimePoint deadline);
  Task<ClientResult<void>> shake_hands(TimePoint deadline);
  Task<ClientResult<void>> write(std::string_view bytes);
  // False: the other side has ended. `wait_first`: it is known that nothing can be there yet.
  Task<ClientResult<bool>> read_more(bool wait_first = false);
  void enter(ClientStage stage, TimePoint deadline);
  [[nodiscard]] std::unexpected<ClientError> failure(ClientFault fault, std::string message) const;
  void expire();

  EventLoop& loop_;
  Resolver& resolver_;
  const std::shared_ptr<const Origin> origin_;
  std::optional<Stream> stream_;
  ResponseHead head_;
  ResponseParser parser_;
  std::string in_;  // bytes that have come
  std::size_t in_begin_ = 0;
  std::string out_, body_;
  ClientStage stage_ = ClientStage::kResolve;
  bool expired_ = false, cancelled_ = false, done_ = false, reused_ = false, broken_ = false;
  bool answered_ = false;                 // a byte of the response was here
  std::move_only_function<void()> wake_;  // ends a wait that is none for the stream
  Deadline deadline_;                     // last: it calls back
};

}  // namespace waybill::http
