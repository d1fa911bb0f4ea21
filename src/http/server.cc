#include "http/server.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_set>

#include <boost/asio/co_spawn.hpp>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/acceptor.h"
#include "http/listening_socket.h"
#include "http/watchdog.h"

namespace waybill::http {
namespace {

constexpr Duration kHandshakeTime = std::chrono::milliseconds(50);
constexpr Duration kTellAgain = std::chrono::seconds(10);

}  // namespace

struct Server::Impl {
  // Refused connections stay a moment, so that the client's request does not meet a closed socket: the reset
  // that it would cause could take the answer with it.
  struct Refused {
    int descriptor;
    TimePoint close_at;
  };
  static constexpr std::size_t kMostRefused = 256;  // of a loop
  static constexpr Duration kRefusedTime = std::chrono::seconds(1);

  // One loop with its connections. The set is touched by the loop's thread only.
  struct Lane {
    std::unique_ptr<EventLoop> loop;
    std::unordered_set<std::shared_ptr<Session>> sessions;
    std::vector<std::unique_ptr<Acceptor>> acceptors;
    std::deque<Refused> refused;
    bool draining = false;
  };

  Impl(ServerOptions given, Handler& to) : options(std::move(given)), handler(to) {
    unsigned threads = options.threads;
    if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
    for (unsigned i = 0; i < threads; ++i) {
      lanes.push_back(std::make_unique<Lane>());
      lanes.back()->loop = std::make_unique<EventLoop>(
          i,
          EventLoopHooks{.lag = options.on_lag, .tick = [this](unsigned index) { on_tick(*lanes[index]); }},
          options.busy_poll);
    }
  }

  void on_tick(Lane& lane) {
    const TimePoint now = std::chrono::steady_clock::now();
    for (const auto& session : lane.sessions) session->check_deadline(now);
    while (!lane.refused.empty() && lane.refused.front().close_at <= now) close_oldest_refused(lane);
  }

  static void close_oldest_refused(Lane& lane) {
    close_refused(lane.refused.front().descriptor);
    lane.refused.pop_front();
  }

  void refuse(Lane& lane, int descriptor, bool plain) {
    refuse_connection(descriptor, plain);
    if (lane.refused.size() >= kMostRefused) close_oldest_refused(lane);
    lane.refused.push_back(
        {descriptor, std::chrono::steady_clock::now() + (plain ? kRefusedTime : Duration{})});
  }

  void on_connection(Lane& lane, int descriptor, const ListenerOptions& listener, std::string address) {
    ++accepted;
    // The place is taken before it is asked whether there is one, so that loops cannot both take the last.
    if (++connections > options.max_connections || lane.draining) {
      --connections;
      ++refused_full;
      if (!lane.draining && options.on_full && is_news(full_told)) options.on_full();
      refuse(lane, descriptor, !listener.tls);
      return;
    }
    const std::shared_ptr<const TlsContext> context = listener.tls ? watchdog->tls() : nullptr;
    const auto session = std::make_shared<Session>(*lane.loop, descriptor, context.get(),
                                                   Peer{std::move(address), listener.surface, listener.tls},
                                                   options.limits, handler, counters);
    lane.sessions.insert(session);
    boost::asio::co_spawn(lane.loop->context(), session->run(),
                          [this, &lane, session](const std::exception_ptr&) { on_end(lane, session); });
  }

  // Acceptors try again every few milliseconds, and clients too: once in a while one of them is told.
  static bool is_news(std::atomic<Duration::rep>& told_at) {
    const Duration::rep now = std::chrono::steady_clock::now().time_since_epoch().count();
    Duration::rep told = told_at.load(std::memory_order_relaxed);
    return now - told >= kTellAgain.count() && told_at.compare_exchange_strong(told, now);
  }

  void on_shortage() {
    if (options.on_shortage && is_news(shortage_told)) options.on_shortage();
  }

  void on_end(Lane& lane, const std::shared_ptr<Session>& session) {
    lane.sessions.erase(session);
    if (--connections == 0) {
      const std::lock_guard lock(mutex);
      ended.notify_all();
    }
  }

  // Runs `work` once on each loop and waits for all.
  void on_every_loop(const std::function<void(Lane&)>& work) {
    std::size_t open = lanes.size();
    for (const auto& lane : lanes) {
      lane->loop->post([&, lane = lane.get()] {
        work(*lane);
        const std::lock_guard lock(mutex);
        if (--open == 0) ended.notify_all();
      });
    }
    std::unique_lock lock(mutex);
    ended.wait(lock, [&open] { return open == 0; });
  }

  ~Impl() {
    for (const auto& lane : lanes) {
      while (!lane->refused.empty()) close_oldest_refused(*lane);
    }
  }

  const ServerOptions options;
  Handler& handler;
  SessionCounters counters;
  std::atomic<std::uint64_t> accepted{0}, refused_full{0};
  std::atomic<std::size_t> connections{0};
  std::atomic<Duration::rep> shortage_told{-kTellAgain.count()}, full_told{-kTellAgain.count()};
  std::vector<std::unique_ptr<Lane>> lanes;
  std::vector<std::vector<ListeningSocket>> sockets;  // of each listener
  std::unique_ptr<Watchdog> watchdog;
  bool started = false, stopped = false;
  std::mutex mutex;
  std::condition_variable ended;
};

Server::Server(ServerOptions options, Handler& handler)
    : impl_(std::make_unique<Impl>(std::move(options), handler)) {}

Server::~Server() { stop(); }

Status Server::listen() {
  std::shared_ptr<const TlsContext> tls;
  if (impl_->options.tls) {
    auto loaded = TlsContext::load(*impl_->options.tls);
    if (!loaded) return std::unexpected(loaded.error());
    tls = std::move(*loaded);
  }
  for (const ListenerOptions& listener : impl_->options.listeners) {
    auto bound = listen_on(listener.address, static_cast<unsigned>(impl_->lanes.size()));
    if (!bound) return std::unexpected(bound.error());
    impl_->sockets.push_back(std::move(*bound));
  }
  std::vector<EventLoop*> loops;
  for (const auto& lane : impl_->lanes) loops.push_back(lane->loop.get());
  impl_->watchdog =
      std::make_unique<Watchdog>(impl_->options, std::move(loops), std::move(tls), impl_->connections);
  return {};
}

std::vector<std::string> Server::addresses() const {
  std::vector<std::string> addresses;
  for (const auto& sockets : impl_->sockets) addresses.push_back(sockets.front().address());
  return addresses;
}

void Server::start() {
  Impl& impl = *impl_;
  impl.started = true;
  for (std::size_t which = 0; which < impl.sockets.size(); ++which) {
    const auto& sockets = impl.sockets[which];
    const ListenerOptions& listener = impl.options.listeners[which];
    for (std::size_t i = 0; i < impl.lanes.size(); ++i) {
      Impl::Lane& lane = *impl.lanes[i];
      // A socket of its own for each loop; those that cannot be bound twice are waited for by all.
      const bool shared = sockets.size() < impl.lanes.size();
      for (std::size_t s = 0; s < sockets.size(); ++s) {
        if (!shared && s != i) continue;
        lane.acceptors.push_back(std::make_unique<Acceptor>(
            *lane.loop, sockets[s].descriptor(), sockets[s].ours(),
            [&impl, &lane, &listener](int descriptor, std::string address) {
              impl.on_connection(lane, descriptor, listener, std::move(address));
            },
            [&impl] { impl.on_shortage(); }));
      }
    }
  }
  for (const auto& lane : impl.lanes) {
    for (const auto& acceptor : lane->acceptors) acceptor->start();
    lane->loop->start();
  }
  impl.watchdog->start();
}

bool Server::drain(TimePoint deadline) {
  if (!impl_->started || impl_->stopped) return true;
  // A connection that the system has made may carry a request already: it is taken, not reset, and so are
  // those whose handshake is under way.
  for (auto& sockets : impl_->sockets) {
    for (ListeningSocket& socket : sockets) socket.refuse_new();
  }
  if (!impl_->sockets.empty() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kHandshakeTime);
  }
  impl_->on_every_loop([](Impl::Lane& lane) {
    for (const auto& acceptor : lane.acceptors) acceptor->finish();
    lane.draining = true;
    for (const auto& session : lane.sessions) session->drain();
  });
  impl_->sockets.clear();
  std::unique_lock lock(impl_->mutex);
  return impl_->ended.wait_until(lock, deadline, [this] { return impl_->connections == 0; });
}

void Server::stop() {
  if (impl_->stopped) return;
  if (impl_->started) {
    (void)drain(TimePoint{});
    impl_->on_every_loop([](Impl::Lane& lane) {
      for (const auto& session : lane.sessions) session->abort();
    });
    std::unique_lock lock(impl_->mutex);
    impl_->ended.wait(lock, [this] { return impl_->connections == 0; });
  }
  impl_->stopped = true;
  if (impl_->watchdog) impl_->watchdog->stop();
  for (const auto& lane : impl_->lanes) {
    lane->loop->stop();
    lane->loop->join();
  }
}

EventLoop& Server::loop(std::size_t index) noexcept {
  return *impl_->lanes[index % impl_->lanes.size()]->loop;
}

std::size_t Server::loops() const noexcept { return impl_->lanes.size(); }

ServerStats Server::stats() const {
  const SessionCounters& counters = impl_->counters;
  return {.accepted = impl_->accepted,
          .refused_full = impl_->refused_full,
          .connections = impl_->connections,
          .requests = counters.requests,
          .refused = counters.refused,
          .hung_up = counters.hung_up,
          .write_stalls = counters.write_stalls,
          .handler_threw = counters.handler_threw,
          .timed_out_header = counters.timed_out_header,
          .timed_out_body = counters.timed_out_body,
          .timed_out_idle = counters.timed_out_idle,
          .timed_out_handshake = counters.timed_out_handshake,
          .body_bytes = counters.body_bytes,
          .bodies_refused = counters.bodies_refused};
}

}  // namespace waybill::http
