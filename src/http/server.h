// The HTTP server: event loops, listeners, connections, and how all of it ends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "config/server_config.h"
#include "http/exchange.h"
#include "http/session.h"
#include "http/tls_context.h"

namespace waybill::http {

struct ListenerOptions {
  config::ListenAddress address;
  Surface surface = Surface::kPublic;
  bool tls = false;
};

// A loop that did not come back to its events for a while.
struct Stall {
  unsigned loop = 0;
  Duration length{};
  std::string_view doing;  // "POST /route", or empty when it is not known
};

struct ServerOptions {
  std::vector<ListenerOptions> listeners = {};
  std::optional<TlsFiles> tls =
      {};  // looked at every few seconds; a changed certificate serves the connections that follow
  unsigned threads = 0;  // event loops; 0: one per core
  Duration busy_poll{};  // of each of them
  std::size_t max_connections = 10'000;
  SessionLimits limits = {};
  Duration stall_threshold = std::chrono::milliseconds(50);

  // Observers. on_lag, on_shortage and on_full run on the loops' threads, the others on the watchdog's.
  std::function<void(unsigned loop, Duration lag)> on_lag = {};
  std::function<void(const Stall&)> on_stall = {};
  std::function<void(Duration)> on_standstill =
      {};  // no thread ran: a stopped process, or no processor for it
  std::function<void()> on_shortage =
      {};  // connections wait for descriptors or memory; now and then while they do
  std::function<void()> on_full = {};  // connections are refused, by max_connections; likewise
  std::function<void(const Status&)> on_tls_reload = {};
};

struct ServerStats {
  std::uint64_t accepted = 0, refused_full = 0;  // connections
  std::size_t connections = 0;
  std::uint64_t requests = 0, refused = 0, hung_up = 0, write_stalls = 0, handler_threw = 0;
  std::uint64_t timed_out_header = 0, timed_out_body = 0, timed_out_idle = 0, timed_out_handshake = 0;
  std::uint64_t body_bytes = 0, bodies_refused = 0;
};

// Thread-safe once listening.
class Server {
 public:
  // `handler` must outlive the server.
  Server(ServerOptions options, Handler& handler);
  ~Server();  // stop()
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Binds every listener; nothing is accepted yet.
  [[nodiscard]] Status listen();
  // "127.0.0.1:8000", as bound, in the order of the listeners.
  [[nodiscard]] std::vector<std::string> addresses() const;
  void start();

  // No new connections; connections without a request end, the others after their answer. Returns true when
  // all have ended, false at the deadline. Blocks.
  bool drain(TimePoint deadline);
  // Aborts what is left and waits until every handler has returned: what they wait for must be answered
  // first.
  void stop();

  // For what is to run beside the connections; it must end before stop().
  [[nodiscard]] EventLoop& loop(std::size_t index) noexcept;
  [[nodiscard]] std::size_t loops() const noexcept;

  [[nodiscard]] ServerStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill::http
