#include "http/server.h"

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace waybill::http {
namespace {

using namespace std::chrono_literals;

// A client that sends what it is told, byte for byte.
class RawClient {
 public:
  explicit RawClient(const std::string& address) {
    if (address.starts_with("unix:")) {
      descriptor_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_un to{};
      to.sun_family = AF_UNIX;
      address.copy(to.sun_path, sizeof to.sun_path - 1, 5);
      EXPECT_EQ(::connect(descriptor_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
      return;
    }
    descriptor_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::atoi(address.c_str() + address.rfind(':') + 1)));
    ::inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    EXPECT_EQ(::connect(descriptor_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void send(std::string_view bytes) {
    EXPECT_EQ(::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // Until `end` stands in what came (several times if asked), or the connection ends.
  std::string receive_until(std::string_view end, std::size_t times = 1) {
    std::string got;
    const auto count = [&got, end] {
      std::size_t found = 0;
      for (std::size_t at = got.find(end); at != std::string::npos; at = got.find(end, at + end.size()))
        ++found;
      return found;
    };
    while (count() < times) {
      char buffer[65536];
      const ssize_t n = ::recv(descriptor_, buffer, sizeof buffer, 0);
      if (n <= 0) break;
      got.append(buffer, static_cast<std::size_t>(n));
    }
    return got;
  }
  std::string receive_all() { return receive_until("\x01 never comes"); }
  [[nodiscard]] int descriptor() const { return descriptor_; }
  void close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }

 private:
  int descriptor_ = -1;
};

// GET /wait answers when it is let go; anything else echoes path and body.
class EchoHandler final : public Handler {
 public:
  Task<> handle(Exchange& exchange) override {
    exchange.on_sent = [this](bool sent) { ++(sent ? sent_ : unsent_); };
    if (exchange.request.path == "/throw") throw std::runtime_error("a bug");
    if (exchange.request.path == "/large") {
      exchange.response.body.assign(32U << 20, 'x');
      co_return;
    }
    if (exchange.request.path == "/stall") {
      const EventLoop::Activity doing(exchange.loop(), "/stall");
      std::this_thread::sleep_for(400ms);
    }
    if (exchange.request.path == "/wait") {
      exchange.watch_for_hang_up({});
      ++waiting_;
      boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                        boost::asio::wait_traits<std::chrono::steady_clock>,
                                        boost::asio::io_context::executor_type>
          timer(exchange.loop().context());
      while (!let_go_ && !exchange.cancelled()) {
        timer.expires_after(5ms);
        co_await timer.async_wait(boost::asio::use_awaitable_t<boost::asio::io_context::executor_type>{});
      }
      --waiting_;
      if (exchange.cancelled()) ++cancelled_;
    }
    exchange.response.content_type = "text/plain";
    exchange.response.body = std::string(exchange.request.path) + ":" + exchange.request.body + ";";
  }
  void refuse(Exchange& exchange, const ParseFailure& failure) override {
    exchange.response.status = failure.status;
    exchange.response.body = failure.code;
  }

  std::atomic<int> sent_{0}, unsent_{0}, waiting_{0}, cancelled_{0};
  std::atomic<bool> let_go_{false};
};

template <class Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 4000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

class ServerTest : public ::testing::Test {
 protected:
  void start(ServerOptions options = {}, const std::string& endpoint = "127.0.0.1:0") {
    if (options.threads == 0) options.threads = 2;
    options.listeners.push_back({.address = config::parse_listen_address(endpoint).value()});
    server_ = std::make_unique<Server>(std::move(options), handler_);
    const Status listening = server_->listen();
    ASSERT_TRUE(listening) << listening.error().message;
    server_->start();
  }
  [[nodiscard]] std::string address() const { return server_->addresses().front(); }

  EchoHandler handler_;
  std::unique_ptr<Server> server_;
};

const std::string kGet = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
const std::string kGetAndClose = "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

TEST_F(ServerTest, AnswersManyRequestsOnOneConnection) {
  start();
  RawClient client(address());
  for (int i = 0; i < 3; ++i) {
    client.send(kGet);
    const std::string answer = client.receive_until("/a:;");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
    EXPECT_NE(answer.find("\r\nContent-Length: 4\r\n"), std::string::npos) << answer;
    EXPECT_NE(answer.find("\r\nDate: "), std::string::npos) << answer;
  }
  client.send(kGetAndClose);
  EXPECT_NE(client.receive_all().find("Connection: close"), std::string::npos);
  EXPECT_TRUE(eventually([this] { return server_->stats().connections == 0; }));
  EXPECT_EQ(handler_.sent_, 4);
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrder) {
  start();
  RawClient client(address());
  std::string all;
  for (int i = 0; i < 200; ++i) {
    const std::string body = std::to_string(i);
    all +=
        "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  client.send(all);
  const std::string answers = client.receive_until(";", 200);
  std::size_t at = 0;
  for (int i = 0; i < 200; ++i) {
    at = answers.find("/p:" + std::to_string(i) + ";", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

TEST_F(ServerTest, AnswersWhatIsCompleteWhileTheNextRequestIsStillOnItsWay) {
  start();
  RawClient client(address());
  client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHo");
  EXPECT_NE(client.receive_until("/a:;").find("/a:;"), std::string::npos);
  client.send("st: a\r\n\r\n");
  EXPECT_NE(client.receive_until("/b:;").find("/b:;"), std::string::npos);
}

TEST_F(ServerTest, AnswersDoNotWaitForTheHandlerOfTheNextRequest) {
  start();
  RawClient client(address());
  client.send(
      "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n"
      "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(eventually([this] { return handler_.sent_ == 2; }));
  EXPECT_NE(client.receive_until(";", 2).find("/b:;"), std::string::npos);
  EXPECT_EQ(handler_.waiting_, 1);
  handler_.let_go_ = true;
  EXPECT_NE(client.receive_until(";").find("/wait:;"), std::string::npos);
  EXPECT_TRUE(eventually([this] { return handler_.sent_ == 3; }));
}

TEST_F(ServerTest, TakesARequestThatComesByteByByte) {
  start();
  RawClient client(address());
  for (const char c : std::string(
           "POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")) {
    client.send(std::string_view(&c, 1));
  }
  EXPECT_NE(client.receive_until("/b:abc;").find("/b:abc;"), std::string::npos);
}

TEST_F(ServerTest, AsksForABodyThatIsAnnounced) {
  start();
  RawClient client(address());
  client.send("POST /c HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.receive_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("hi");
  EXPECT_NE(client.receive_until("/c:hi;").find("200 OK"), std::string::npos);
  client.send("POST /c HTTP/1.1\r\nHost: x\r\nExpect: a miracle\r\nContent-Length: 2\r\n\r\n");
  EXPECT_TRUE(client.receive_all().starts_with("HTTP/1.1 417 "));
}

TEST_F(ServerTest, AnswersHeadWithoutABody) {
  start();
  RawClient client(address());
  client.send("HEAD /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string answer = client.receive_all();
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
  EXPECT_NE(answer.find("Content-Length: 4"), std::string::npos);
}

TEST_F(ServerTest, RefusesAndClosesAfterWhatIsNotARequest) {
  start();
  RawClient client(address());
  client.send(
      "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
      kGet);
  const std::string answer = client.receive_all();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << answer;
  EXPECT_EQ(answer.find("200 OK"), std::string::npos) << "the smuggled request must not be answered";
  EXPECT_EQ(server_->stats().refused, 1U);
}

TEST_F(ServerTest, ABodyThatIsTooLargeIsToldToAClientThatStillSends) {
  ServerOptions options;
  options.limits.parser.max_body_bytes = 1000;
  start(std::move(options));
  RawClient client(address());
  client.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n\r\n");
  client.send(std::string(100'000, 'x'));
  EXPECT_TRUE(client.receive_until("body_too_large").starts_with("HTTP/1.1 413 "));
}

constexpr std::size_t kLarge = 600'000;
const std::string kLargeHead =
    "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(kLarge) + "\r\n\r\n";

ServerOptions for_a_megabyte_of_bodies() {
  ServerOptions options;
  options.limits.parser.max_body_bytes = 1'000'000;
  options.limits.max_total_body_bytes = 1'000'000;
  return options;
}

TEST_F(ServerTest, AllBodiesTogetherAreBounded) {
  start(for_a_megabyte_of_bodies());
  RawClient first(address());
  first.send(kLargeHead);
  first.send(std::string(kLarge - 1, 'x'));
  ASSERT_TRUE(eventually([this] { return server_->stats().body_bytes == kLarge; }));
  RawClient second(address());
  second.send(kLargeHead);  // and nothing of the body: it is told at once
  const std::string answer = second.receive_all();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
  EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos) << answer;
  EXPECT_EQ(server_->stats().bodies_refused, 1U);
  RawClient small(address());
  small.send("POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 65536\r\n\r\n" + std::string(65536, 'y'));
  EXPECT_TRUE(small.receive_until("y;").starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(server_->stats().body_bytes, kLarge) << "small ones are not counted";
  first.send("x");
  EXPECT_TRUE(first.receive_until("x;").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(eventually([this] { return server_->stats().body_bytes == 0; }));
  RawClient third(address());
  third.send(kLargeHead + std::string(kLarge, 'z'));
  EXPECT_TRUE(third.receive_until("z;").starts_with("HTTP/1.1 200 "));
}

TEST_F(ServerTest, ABodyInChunksIsRefusedWhereThereIsNoMoreRoom) {
  start(for_a_megabyte_of_bodies());
  RawClient first(address());
  first.send(kLargeHead);
  first.send(std::string(kLarge - 1, 'x'));
  ASSERT_TRUE(eventually([this] { return server_->stats().body_bytes == kLarge; }));
  RawClient second(address());
  second.send("POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "10000\r\n" + std::string(65536, 'y') + "\r\n";
  second.send(chunk + chunk);
  ASSERT_TRUE(eventually([this] { return server_->stats().body_bytes == kLarge + (2 * 65536); }));
  second.send(chunk + chunk + chunk);
  EXPECT_TRUE(second.receive_until("too_many_body_bytes").starts_with("HTTP/1.1 503 "));
  EXPECT_EQ(server_->stats().body_bytes, kLarge) << "what was refused is given back";
  first.close();
  EXPECT_TRUE(eventually([this] { return server_->stats().body_bytes == 0; }));
}

TEST_F(ServerTest, WhoAnnouncesABodyAndSendsNothingKeepsNobodyOut) {
  start(for_a_megabyte_of_bodies());
  RawClient first(address()), second(address()), third(address());
  first.send(kLargeHead);
  second.send(kLargeHead);
  third.send(kLargeHead + std::string(kLarge, 'z'));
  EXPECT_TRUE(third.receive_until("z;").starts_with("HTTP/1.1 200 "));
}

TEST_F(ServerTest, SlowHeadersAndBodiesAreTold) {
  ServerOptions options;
  options.limits.header_timeout = 200ms;
  options.limits.body_timeout = 200ms;
  options.limits.idle_timeout = 300ms;
  start(std::move(options));
  RawClient header(address()), body(address()), idle(address());
  header.send("GET /a HTTP/1.1\r\nHos");
  body.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab");
  EXPECT_TRUE(header.receive_all().starts_with("HTTP/1.1 408 "));
  EXPECT_TRUE(body.receive_all().starts_with("HTTP/1.1 408 "));
  EXPECT_EQ(idle.receive_all(), "");
  const ServerStats stats = server_->stats();
  EXPECT_EQ(stats.timed_out_header, 1U);
  EXPECT_EQ(stats.timed_out_body, 1U);
  EXPECT_EQ(stats.timed_out_idle, 1U);
}

TEST_F(ServerTest, AReaderThatDoesNotReadIsEnded) {
  ServerOptions options;
  options.limits.write_timeout = 300ms;
  start(std::move(options));
  RawClient client(address());
  client.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(eventually([this] { return server_->stats().write_stalls == 1; }));
  EXPECT_TRUE(eventually([this] { return handler_.unsent_ == 1; }));
}

TEST_F(ServerTest, AClientThatHangsUpCancels) {
  start();
  {
    RawClient client(address());
    client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_TRUE(eventually([this] { return handler_.waiting_ == 1; }));
  }
  EXPECT_TRUE(eventually([this] { return handler_.cancelled_ == 1; }));
  EXPECT_TRUE(eventually([this] { return server_->stats().connections == 0; }));
  EXPECT_EQ(server_->stats().hung_up, 1U);
}

TEST_F(ServerTest, AClientThatHangsUpBehindAPipelinedRequestCancels) {
  start();
  {
    RawClient client(address());
    client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n" + kGet);
    ASSERT_TRUE(eventually([this] { return handler_.waiting_ == 1; }));
    client.send(kGet);
  }
  EXPECT_TRUE(eventually([this] { return handler_.cancelled_ == 1; }));
}

TEST_F(ServerTest, AHandlerThatThrowsIsAFaultOfTheServer) {
  start();
  RawClient client(address());
  client.send("GET /throw HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(client.receive_until("}}").starts_with("HTTP/1.1 500 "));
  EXPECT_EQ(server_->stats().handler_threw, 1U);
}

TEST_F(ServerTest, MoreConnectionsThanAllowedAreToldSo) {
  ServerOptions options;
  options.max_connections = 2;
  start(std::move(options));
  RawClient first(address()), second(address());
  first.send(kGet);
  second.send(kGet);
  first.receive_until(";");
  second.receive_until(";");
  RawClient third(address());
  const std::string answer = third.receive_all();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
  EXPECT_NE(answer.find("Retry-After: "), std::string::npos);
  first.send(kGetAndClose);
  first.receive_all();
  EXPECT_TRUE(eventually([this] { return server_->stats().connections == 1; }));
  RawClient fourth(address());
  fourth.send(kGetAndClose);
  EXPECT_TRUE(fourth.receive_all().starts_with("HTTP/1.1 200 "));
}

TEST_F(ServerTest, DrainsWithoutLosingAnAnswer) {
  start();
  RawClient idle(address()), busy(address());
  idle.send(kGet);
  idle.receive_until(";");
  busy.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(eventually([this] { return handler_.waiting_ == 1; }));
  EXPECT_FALSE(server_->drain(std::chrono::steady_clock::now() + 50ms));
  EXPECT_EQ(idle.receive_all(), "");
  handler_.let_go_ = true;
  EXPECT_TRUE(server_->drain(std::chrono::steady_clock::now() + 20s));
  const std::string answer = busy.receive_all();
  EXPECT_NE(answer.find("Connection: close"), std::string::npos) << answer;
  EXPECT_EQ(handler_.sent_, 2);
}

TEST_F(ServerTest, DrainsWithoutLosingWhatWaitsToBeAccepted) {
  ServerOptions options;
  options.threads = 1;
  start(std::move(options));
  RawClient busy(address());
  busy.send("GET /stall HTTP/1.1\r\nHost: x\r\n\r\n");
  std::this_thread::sleep_for(100ms);  // the loop sleeps now: nothing is accepted
  std::vector<std::unique_ptr<RawClient>> waiting;
  for (int i = 0; i < 20; ++i) {
    waiting.push_back(std::make_unique<RawClient>(address()));
    waiting.back()->send(kGet);
  }
  EXPECT_TRUE(server_->drain(std::chrono::steady_clock::now() + 20s));
  for (const auto& client : waiting) EXPECT_TRUE(client->receive_all().starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(handler_.sent_, 21);
}

TEST_F(ServerTest, DrainsWithoutLosingARequestThatComesJustThen) {
  start();
  RawClient late(address());
  late.send(kGet);
  late.receive_until(";");
  std::thread draining([this] { EXPECT_TRUE(server_->drain(std::chrono::steady_clock::now() + 20s)); });
  std::this_thread::sleep_for(100ms);  // it has begun
  late.send(kGet);
  const std::string answer = late.receive_all();
  draining.join();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
}

TEST_F(ServerTest, ABodyThatIsCutOffHasAnOutcome) {
  start();
  {
    RawClient client(address());
    client.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab");
  }
  EXPECT_TRUE(eventually([this] { return server_->stats().hung_up == 1; }));
  EXPECT_EQ(server_->stats().refused, 1U);
}

TEST_F(ServerTest, StopCancelsWhatStillRuns) {
  start();
  RawClient client(address());
  client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(eventually([this] { return handler_.waiting_ == 1; }));
  server_->stop();
  EXPECT_EQ(handler_.cancelled_, 1);
  EXPECT_EQ(server_->stats().connections, 0U);
}

TEST_F(ServerTest, TellsOfALoopThatHangs) {
  std::atomic<int> stalls{0};
  ServerOptions options;
  options.on_stall = [&stalls](const Stall& stall) {
    if (stall.doing == "/stall") ++stalls;
  };
  start(std::move(options));
  RawClient client(address());
  client.send("GET /stall HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(eventually([&stalls] { return stalls > 0; }));
  client.receive_until(";");
}

TEST_F(ServerTest, ListensOnAUnixSocketAndCleansUp) {
  const std::string path = ::testing::TempDir() + "waybill-server-test.sock";
  start({}, "unix:" + path);
  {
    RawClient client(address());
    client.send(kGetAndClose);
    EXPECT_TRUE(client.receive_all().starts_with("HTTP/1.1 200 "));
  }
  server_.reset();
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

TEST_F(ServerTest, AnAddressInUseIsToldAsSuch) {
  start();
  Server second({.listeners = {{.address = config::parse_listen_address(address()).value()}}}, handler_);
  const Status listening = second.listen();
  ASSERT_FALSE(listening);
  EXPECT_NE(listening.error().message.find("another program listens there"), std::string::npos)
      << listening.error().message;
}

TEST(Response, NeverLetsAValueSplitIt) {
  Response response;
  response.add_header("x-a", "fine");
  response.add_header("x-b", "not\r\nx-evil: fine");
  EXPECT_EQ(response.headers, "x-a: fine\r\n");
}

}  // namespace
}  // namespace waybill::http
