#include "client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "answer.h"
#include "process.h"

namespace burst {

struct Client::Connection {
  int fd = -1;
  Id flight = 0;
  bool used = false;  // has answered before
  bool want_write = true;
  std::string out;
  std::size_t out_at = 0;
  std::string in;
};

Client::Client(Target target, double timeout_s)
    : target_(std::move(target)), timeout_s_(timeout_s), epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

Client::~Client() {
  for (const auto& [c, owner] : connections_) ::close(c->fd);
  ::close(epoll_);
}

double Client::now() const { return monotonic_s() - start_s_; }

std::vector<Outcome> Client::run(std::vector<Call> calls, FollowUp follow_up) {
  pending_.assign(std::make_move_iterator(calls.begin()), std::make_move_iterator(calls.end()));
  outcomes_.clear();
  timers_ = {};
  follow_up_ = std::move(follow_up);
  start_s_ = monotonic_s();
  std::array<epoll_event, 512> events;
  while (!pending_.empty() || !flights_.empty()) {
    // At most 64 sends between two looks at the sockets, so that answers to a spike's first requests are not
    // read late because its last ones are still being sent.
    for (int i = 0; i < 64 && !pending_.empty() && pending_.front().due_s <= now(); ++i) {
      Call call = std::move(pending_.front());
      pending_.pop_front();
      start(std::move(call));
    }
    const timespec wait{0, wait_ns()};
    const int n = epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()), &wait, nullptr);
    for (int i = 0; i < n; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      auto& c = *static_cast<Connection*>(event.data.ptr);
      if (c.fd >= 0 && (event.events & EPOLLOUT) != 0) write(c);
      if (c.fd >= 0 && (event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read(c);
    }
    expire();
    closed_.clear();
  }
  return std::move(outcomes_);
}

std::int64_t Client::wait_ns() const {
  double until_s = 0.1;
  if (!pending_.empty()) until_s = std::min(until_s, pending_.front().due_s - now());
  if (!timers_.empty()) until_s = std::min(until_s, timers_.top().at_s - now());
  return until_s <= 0 ? 0 : static_cast<std::int64_t>(until_s * 1e9);
}

void Client::start(Call call) {
  if (call.due_s < 0) call.due_s = now();
  const Id id = next_id_++;
  timers_.push({call.due_s + timeout_s_, id, Fate::dropped});
  if (call.hang_up_after_s >= 0) timers_.push({call.due_s + call.hang_up_after_s, id, Fate::hung_up});
  const double lag_s = now() - call.due_s;
  flights_.emplace(id, Flight{std::move(call), lag_s});
  send(id);
}

void Client::send(Id id) {
  Flight& flight = flights_.at(id);
  Connection* c = nullptr;
  if (!idle_.empty() && !flight.retried) {
    c = idle_.back();
    idle_.pop_back();
  } else {
    c = connect_new();
  }
  if (c == nullptr) return finish(id, {.fate = Fate::broken});
  c->flight = id;
  flight.connection = c;
  const Call& call = flight.call;
  c->out = (call.body.empty() ? "GET " : "POST ") + call.path + " HTTP/1.1\r\nHost: " + target_.host + ":" +
           std::to_string(target_.port) + "\r\nAccept: application/json\r\n";
  for (const std::string& line : target_.headers) c->out += line + "\r\n";
  if (!call.body.empty()) {
    c->out +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(call.body.size()) + "\r\n";
  }
  c->out += "\r\n" + call.body;
  c->out_at = 0;
  write(*c);  // on this machine a new connection stands at once
}

Client::Connection* Client::connect_new() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return nullptr;
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(target_.port));
  inet_pton(AF_INET, target_.host.c_str(), &to.sin_addr);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) < 0 && errno != EINPROGRESS) {
    ::close(fd);
    return nullptr;
  }
  auto owner = std::make_unique<Connection>();
  Connection* c = owner.get();
  connections_.emplace(c, std::move(owner));
  c->fd = fd;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT;
  event.data.ptr = c;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  return c;
}

void Client::write(Connection& c) {
  while (c.out_at < c.out.size()) {
    const ssize_t n = ::send(c.fd, c.out.data() + c.out_at, c.out.size() - c.out_at, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) return lost(c);
    if (n < 0) break;
    c.out_at += static_cast<std::size_t>(n);
  }
  const bool want = c.out_at < c.out.size();
  if (want != c.want_write) {
    c.want_write = want;
    epoll_event event{};
    event.events = want ? EPOLLIN | EPOLLOUT : EPOLLIN;
    event.data.ptr = &c;
    epoll_ctl(epoll_, EPOLL_CTL_MOD, c.fd, &event);
  }
}

void Client::read(Connection& c) {
  std::array<char, 16384> buffer;
  bool at_end = false;
  for (;;) {
    const ssize_t n = ::recv(c.fd, buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) {
      at_end = true;
      break;
    }
    c.in.append(buffer.data(), static_cast<std::size_t>(n));
    if (static_cast<std::size_t>(n) < buffer.size()) break;
  }
  if (c.flight == 0) {
    if (at_end || !c.in.empty()) close(c);
    return;
  }
  Answer answer = parse_answer(c.in, at_end);
  while (answer.state == Answer::State::complete && answer.status / 100 == 1) {  // the real answer follows
    c.in.erase(0, c.in.find("\r\n\r\n") + 4);
    answer = parse_answer(c.in, at_end);
  }
  if (answer.state == Answer::State::incomplete && !at_end) return;
  if (answer.state != Answer::State::complete) return lost(c);

  const std::string body = answer.chunked ? dechunk(answer.body) : std::string(answer.body);
  const Id id = std::exchange(c.flight, 0);
  Flight& flight = flights_.at(id);
  flight.connection = nullptr;
  Outcome outcome{.fate = Fate::answered, .status = answer.status};
  if (answer.status == 200) {
    outcome.route_checked = !flight.call.expected_route.empty();
    outcome.route_right = outcome.route_checked && member(body, "route") == flight.call.expected_route;
    outcome.degraded = member(body, "degraded") == "true";
    outcome.tier = member(body, "tier");
  }
  const bool keep = answer.keep_alive;
  c.in.clear();
  c.used = true;
  if (keep) {
    idle_.push_back(&c);
  } else {
    close(c);
  }
  finish(id, std::move(outcome));
}

// The connection failed with a request on it. A server may close a kept-alive connection at the moment that
// we send: as browsers do, try once more on a new one.
void Client::lost(Connection& c) {
  const Id id = std::exchange(c.flight, 0);
  const bool stale = c.used && c.in.empty();
  close(c);
  if (id == 0) return;
  Flight& flight = flights_.at(id);
  flight.connection = nullptr;
  if (!stale || flight.retried) return finish(id, {.fate = Fate::broken});
  flight.retried = true;
  send(id);
}

// The object lives on until the end of this round of events, which may name it again.
void Client::close(Connection& c) {
  ::close(c.fd);
  c.fd = -1;
  std::erase(idle_, &c);
  if (const auto it = connections_.find(&c); it != connections_.end()) {
    closed_.push_back(std::move(it->second));
    connections_.erase(it);
  }
}

void Client::finish(Id id, Outcome outcome) {
  const Flight flight = std::move(flights_.at(id));
  flights_.erase(id);
  outcome.done_s = now();
  outcome.latency_s = outcome.fate == Fate::dropped ? timeout_s_ : outcome.done_s - flight.call.due_s;
  outcome.lag_s = flight.lag_s;
  outcome.phase = flight.call.phase;
  outcomes_.push_back(std::move(outcome));
  Call next;
  if (follow_up_ && follow_up_(flight.call, outcomes_.back(), next)) {
    next.due_s = -1;
    pending_.push_front(std::move(next));
  }
}

void Client::expire() {
  while (!timers_.empty() && timers_.top().at_s <= now()) {
    const Timer timer = timers_.top();
    timers_.pop();
    const auto it = flights_.find(timer.flight);
    if (it == flights_.end()) continue;
    if (Connection* c = it->second.connection) {
      c->flight = 0;
      close(*c);
    }
    finish(timer.flight, {.fate = timer.fate});
  }
}

}  // namespace burst
