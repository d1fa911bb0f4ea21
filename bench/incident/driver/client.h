// An open-loop HTTP/1.1 load: each request is sent when it is due, whatever became of the others, and its
// latency counts from the due time. One thread, one epoll, keep-alive connections opened on demand.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

namespace burst {

struct Target {
  std::string host = "127.0.0.1";
  int port = 8000;
  std::vector<std::string> headers;  // extra request headers, "Name: value"
};

struct Call {
  double due_s = 0;  // since the start of run(); below zero: at once
  std::string path;
  std::string body;            // empty: GET, else POST
  std::string expected_route;  // empty: do not check
  int phase = 0;               // for the caller's own grouping
  double hang_up_after_s =
      -1;  // the client closes the connection then if there is no answer yet; below zero: never
};

enum class Fate : std::uint8_t {
  answered,  // whatever the status
  dropped,   // no answer within the timeout
  broken,    // refused, reset or not HTTP
  hung_up,   // we closed the connection
};

struct Outcome {
  Fate fate = Fate::dropped;
  int status = 0;        // HTTP status where answered
  double latency_s = 0;  // from due to the last byte of the answer; the timeout where dropped
  double done_s = 0;     // since the start of run()
  double lag_s = 0;      // how late this driver sent it
  bool route_checked = false;
  bool route_right = false;
  bool degraded = false;  // as the answer says
  std::string tier = {};  // as the answer says
  int phase = 0;
};

class Client {
 public:
  Client(Target target, double timeout_s);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Sends the calls (in order of due time) and returns when each has an outcome, in the order of the
  // outcomes. follow_up may return one more call to send at once in answer to an outcome.
  using FollowUp = std::function<bool(const Call&, const Outcome&, Call& next)>;
  std::vector<Outcome> run(std::vector<Call> calls, FollowUp follow_up = nullptr);

 private:
  using Id = std::uint64_t;

  struct Connection;

  struct Flight {
    Call call;
    double lag_s = 0;
    Connection* connection = nullptr;
    bool retried = false;
  };

  struct Timer {
    double at_s;
    Id flight;
    Fate fate;
    bool operator>(const Timer& other) const { return at_s > other.at_s; }
  };

  void start(Call call);
  void send(Id id);
  Connection* connect_new();
  void write(Connection& c);
  void read(Connection& c);
  void lost(Connection& c);
  void close(Connection& c);
  void finish(Id id, Outcome outcome);
  void expire();
  [[nodiscard]] double now() const;
  [[nodiscard]] std::int64_t wait_ns() const;

  Target target_;
  double timeout_s_;
  int epoll_ = -1;
  double start_s_ = 0;
  Id next_id_ = 1;  // 0: no flight
  std::deque<Call> pending_;
  std::unordered_map<Id, Flight> flights_;
  // Stays behind when its flight has ended otherwise, and finds nothing when its time comes.
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> idle_;
  std::vector<std::unique_ptr<Connection>> closed_;  // in this round of events
  std::vector<Outcome> outcomes_;
  FollowUp follow_up_;
};

}  // namespace burst
