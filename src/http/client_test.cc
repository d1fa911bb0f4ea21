#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <boost/asio/co_spawn.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/client_pool.h"

namespace waybill::http {
namespace {

using namespace std::chrono_literals;

TimePoint in(Duration time) { return std::chrono::steady_clock::now() + time; }

// Answers with given bytes, one connection after another, and keeps what it was sent.
class ScriptedServer {
 public:
  ScriptedServer() {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(::listen(listener_, 16), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    port_ = ntohs(at.sin_port);
  }
  ~ScriptedServer() {
    ::shutdown(listener_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    ::close(listener_);
  }
  // What one connection does: each text answers one request; then it is closed.
  void serve(std::vector<std::vector<std::string>> connections) {
    thread_ = std::thread([this, connections = std::move(connections)] {
      for (const auto& answers : connections) {
        const int client = ::accept(listener_, nullptr, nullptr);
        if (client < 0) return;
        for (const std::string& answer : answers) {
          std::string request;
          char buffer[4096];
          while (request.find("\r\n\r\n") == std::string::npos) {
            const ssize_t n = ::recv(client, buffer, sizeof buffer, 0);
            if (n <= 0) break;
            request.append(buffer, static_cast<std::size_t>(n));
          }
          if (answer == "(silence)") {
            while (::recv(client, buffer, sizeof buffer, 0) > 0) continue;
            break;
          }
          (void)::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
        }
        ::shutdown(client, SHUT_WR);
        char rest[4096];
        while (::recv(client, rest, sizeof rest, 0) > 0) continue;
        ::close(client);
      }
    });
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

struct Answer {
  ClientError error;
  bool ok = false;
  unsigned status = 0;
  std::string body;
};

Task<ClientResult<void>> fetch(ClientConnection& connection, Answer& answer, Duration patience) {
  ClientResult<void> done = co_await connection.open(in(patience));
  if (!done) co_return done;
  const std::string head = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  done = co_await connection.send(head, {}, in(patience));
  if (!done) co_return done;
  done = co_await connection.read_head(in(patience));
  if (!done) co_return done;
  answer.status = connection.head().status;
  for (;;) {
    ClientResult<std::string_view> piece = co_await connection.read_body(in(patience));
    if (!piece) co_return std::unexpected(piece.error());
    if (piece->empty()) break;
    answer.body.append(*piece);
  }
  co_return ClientResult<void>{};
}

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() : loop_(0, {}) {
    loop_.start();
    origin_ = origin(server_.port());
  }
  ~ClientTest() override {
    resolver_.stop();
    loop_.stop();
    loop_.join();
  }
  static std::shared_ptr<const Origin> origin(std::uint16_t port, std::string host = "127.0.0.1") {
    auto made = std::make_shared<Origin>();
    made->host = std::move(host);
    made->port = port;
    made->connect_timeout = 500ms;
    return made;
  }

  static Task<> call(ClientTest* test, Answer* answer, Duration patience) {
    ClientPool& pool = test->loop_.local<ClientPool>();
    std::unique_ptr<ClientConnection> connection = pool.take(test->origin_, test->resolver_);
    test->current_ = connection.get();
    ClientResult<void> done = co_await fetch(*connection, *answer, patience);
    test->current_ = nullptr;
    answer->ok = done.has_value();
    if (!done) answer->error = done.error();
    pool.give_back(std::move(connection));
  }
  Answer get(Duration patience = 5s) {
    Answer answer;
    auto ended = std::make_shared<std::promise<void>>();
    loop_.post([this, &answer, patience, ended] {
      boost::asio::co_spawn(loop_.context(), call(this, &answer, patience),
                            [ended](const std::exception_ptr&) { ended->set_value(); });
    });
    ended->get_future().wait();
    return answer;
  }

  ScriptedServer server_;
  std::shared_ptr<const Origin> origin_;
  Resolver resolver_;
  EventLoop loop_;
  std::atomic<ClientConnection*> current_{nullptr};
};

const std::string kHello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

TEST_F(ClientTest, ReadsBodiesOfEachKind) {
  server_.serve(
      {{kHello,
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\nuntil the end"}});
  EXPECT_EQ(get().body, "hello");
  EXPECT_EQ(get().body, "abcde");
  EXPECT_EQ(get().status, 204U);
  EXPECT_EQ(get().body, "until the end");
}

TEST_F(ClientTest, ReusesAConnectionAfterALongAnswer) {
  const std::string body(40'000, 'x');
  const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n" + body;
  server_.serve({{answer, answer, kHello}});  // one connection
  EXPECT_EQ(get().body, body);
  EXPECT_EQ(get().body, body);
  EXPECT_EQ(get().body, "hello");
}

TEST_F(ClientTest, AsksOfEachResolvedAddressWhetherItMayBeCalled) {
  server_.serve({{kHello, kHello, kHello}});
  std::vector<std::string> asked;
  bool allowed = false;
  // The same place by name, as an address and in forms that only the system's resolver reads.
  for (const char* host : {"localhost", "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1"}) {
    auto made = std::make_shared<Origin>(*origin(server_.port(), host));
    made->may_connect = [&](const boost::asio::ip::address& address) {
      asked.push_back(address.to_string());
      return allowed;
    };
    origin_ = made;
    const Answer answer = get();
    EXPECT_EQ(answer.error.fault, ClientFault::kRefused) << host;
    EXPECT_NE(answer.error.message.find("may not be called"), std::string::npos) << answer.error.message;
    EXPECT_THAT(asked, ::testing::Contains("127.0.0.1")) << host;
    asked.clear();
  }
  allowed = true;
  EXPECT_TRUE(get().ok);
}

TEST_F(ClientTest, SaysWhenAKeptConnectionHadEnded) {
  server_.serve({{kHello, ""}, {kHello}});
  EXPECT_TRUE(get().ok);
  const Answer second = get();  // the server takes the request and ends without a byte
  EXPECT_FALSE(second.ok);
  EXPECT_TRUE(second.error.stale) << second.error.message;
  EXPECT_TRUE(get().ok);
}

TEST_F(ClientTest, NeverCallsAFreshConnectionStale) {
  server_.serve({{""}});
  const Answer answer = get();
  EXPECT_EQ(answer.error.fault, ClientFault::kClosed);
  EXPECT_FALSE(answer.error.stale);
}

TEST_F(ClientTest, DoesNotReuseWhatTheServerHasClosed) {
  server_.serve({{kHello}, {kHello}});
  EXPECT_TRUE(get().ok);
  std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(get().ok);
}

TEST_F(ClientTest, TellsACutBodyFromAnEnd) {
  server_.serve({{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"},
                 {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"}});
  for (int i = 0; i < 2; ++i) {
    const Answer answer = get();
    EXPECT_EQ(answer.body, "hello");
    EXPECT_EQ(answer.error.fault, ClientFault::kClosed);
    EXPECT_EQ(answer.error.stage, ClientStage::kBody);
  }
}

TEST_F(ClientTest, RefusesAnswersWhoseLengthIsAmbiguous) {
  server_.serve({{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello"},
                 {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello"},
                 {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\nhello"},
                 {"nonsense\r\n\r\n"}});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(get().error.fault, ClientFault::kMalformed) << i;
}

TEST_F(ClientTest, GivesUpOnSilence) {
  server_.serve({{"(silence)"}, {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "(silence)"}});
  Answer answer = get(50ms);
  EXPECT_EQ(answer.error.fault, ClientFault::kTimeout);
  EXPECT_EQ(answer.error.stage, ClientStage::kHeaders);
}

TEST_F(ClientTest, IsToldToStop) {
  server_.serve({{"(silence)"}});
  std::thread stopper([this] {
    while (current_ == nullptr) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(20ms);
    loop_.post([this] {
      if (current_ != nullptr) current_.load()->cancel();
    });
  });
  const Answer answer = get(60s);
  stopper.join();
  EXPECT_EQ(answer.error.fault, ClientFault::kCancelled);
}

TEST_F(ClientTest, SaysThatNobodyListens) {
  int unused = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  ASSERT_EQ(::bind(unused, reinterpret_cast<sockaddr*>(&at), size), 0);
  ASSERT_EQ(::getsockname(unused, reinterpret_cast<sockaddr*>(&at), &size), 0);
  origin_ = origin(ntohs(at.sin_port));
  const Answer answer = get();
  EXPECT_EQ(answer.error.fault, ClientFault::kRefused);
  EXPECT_EQ(answer.error.stage, ClientStage::kConnect);
  ::close(unused);
}

TEST_F(ClientTest, SaysThatThereIsNoSuchName) {
  origin_ = origin(80, "no-such-host.invalid");
  const Answer answer = get();
  EXPECT_FALSE(answer.ok);
  EXPECT_EQ(answer.error.stage, ClientStage::kResolve);
}

TEST_F(ClientTest, ResolvesNames) {
  origin_ = origin(server_.port(), "localhost");
  server_.serve({{kHello, kHello}});
  EXPECT_EQ(get().body, "hello");
  EXPECT_EQ(get().body, "hello");
}

}  // namespace
}  // namespace waybill::http
