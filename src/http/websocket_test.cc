// WebSockets on a whole server, asked by a client that sends what it is told, byte for byte.
#include "http/websocket.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/server.h"

namespace waybill::http {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Echoes messages; "flood" is answered with a megabyte again and again, "throw" and "leave" end it.
class SocketHandler final : public Handler {
 public:
  Task<> handle(Exchange& exchange) override {
    exchange.on_sent = [this](bool sent) { ++(sent ? sent_ : unsent_); };
    Result<WebSocket*> upgraded = co_await exchange.upgrade("chat", limits);
    if (!upgraded) {
      exchange.response.status = upgraded.error().code == ErrorCode::kUnsupported ? 426 : 400;
      exchange.response.body = upgraded.error().message;
      co_return;
    }
    WebSocket& socket = **upgraded;
    ++open_;
    for (;;) {
      std::optional<WebSocket::Message> message = co_await socket.read();
      if (!message) break;
      if (message->data == "leave") break;
      if (message->data == "throw") throw std::runtime_error("a bug");
      if (message->data == "flood") {
        while (socket.send(std::string(1U << 20, 'x'))) continue;
        continue;
      }
      socket.send(message->data);
    }
    code_ = socket.end_code();
    --open_;
  }
  void refuse(Exchange& exchange, const ParseFailure& failure) override {
    exchange.response.status = failure.status;
  }

  WebSocketLimits limits;
  std::atomic<int> sent_{0}, unsent_{0}, open_{0};
  std::atomic<unsigned> code_{0};
};

const std::string kUpgrade =
    "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

// Masked with zeros, so that the payload can be read.
std::string frame(unsigned opcode, std::string_view payload) {
  std::string out = {static_cast<char>(0x80 | opcode), static_cast<char>(0x80 | payload.size())};
  return out + std::string(4, '\0') + std::string(payload);
}
std::string close_frame(unsigned code) {
  return frame(8, std::string{static_cast<char>(code >> 8), static_cast<char>(code & 0xFF)});
}

class Client {
 public:
  explicit Client(const std::string& address)
      : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    ::inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    EXPECT_EQ(::connect(descriptor_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }
  ~Client() { ::close(descriptor_); }
  void send(std::string_view bytes) const {
    EXPECT_EQ(::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  [[nodiscard]] std::string receive(std::string_view end) const {
    std::string got;
    char buffer[4096];
    while (got.find(end) == std::string::npos) {
      const ssize_t n = ::recv(descriptor_, buffer, sizeof buffer, 0);
      if (n <= 0) break;
      got.append(buffer, static_cast<std::size_t>(n));
    }
    return got;
  }
  [[nodiscard]] std::string receive_all() const { return receive("\x01 never comes"); }

 private:
  int descriptor_;
};

template <class Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 4000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

class WebSocketTest : public ::testing::Test {
 protected:
  void start() {
    ServerOptions options;
    options.threads = 1;
    options.listeners.push_back({.address = config::parse_listen_address("127.0.0.1:0").value()});
    server_ = std::make_unique<Server>(std::move(options), handler_);
    ASSERT_TRUE(server_->listen());
    server_->start();
  }
  Client connect() const { return Client(server_->addresses().front()); }

  SocketHandler handler_;
  std::unique_ptr<Server> server_;
};

TEST_F(WebSocketTest, IsAgreedOnEchoesAndEndsInGoodOrder) {
  start();
  const Client client = connect();
  client.send(kUpgrade);
  const std::string head = client.receive("\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 101 Switching Protocols\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nConnection: Upgrade\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nUpgrade: websocket\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nSec-WebSocket-Protocol: chat\r\n"));
  client.send(frame(1, "Hello"));
  EXPECT_EQ(client.receive("Hello"), "\x81\x05Hello");
  client.send(frame(9, "beat"));
  EXPECT_EQ(client.receive("beat"),
            "\x8a\x04"
            "beat");
  client.send(close_frame(1000));
  EXPECT_EQ(client.receive_all(), "\x88\x02\x03\xe8");
  EXPECT_TRUE(eventually([this] { return handler_.sent_ == 1 && handler_.code_ == 1000; }));
}

TEST_F(WebSocketTest, FramesThatCameWithTheRequestAreRead) {
  start();
  const Client client = connect();
  client.send(kUpgrade + frame(1, "early") + frame(1, "bird"));
  EXPECT_THAT(client.receive("bird"), EndsWith("\r\n\r\n\x81\x05"
                                               "early\x81\x04"
                                               "bird"));
}

TEST_F(WebSocketTest, WhatAsksForNoneIsAnsweredAsAnyRequest) {
  start();
  const Client client = connect();
  client.send("GET /ws HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.receive("Upgrade: websocket"), StartsWith("HTTP/1.1 400 "));
  std::string old = kUpgrade;
  client.send(old.replace(old.find(": 13"), 4, ": 8\r\n"));  // an empty line ends the head here
  EXPECT_THAT(client.receive("version 13"), StartsWith("HTTP/1.1 426 Upgrade Required"));
}

TEST_F(WebSocketTest, WhatBreaksTheProtocolEndsIt) {
  start();
  const Client client = connect();
  client.send(kUpgrade + frame(3, "x"));
  EXPECT_THAT(client.receive_all(), EndsWith(std::string("\x88\x02\x03\xea")));
  EXPECT_TRUE(eventually([this] { return handler_.code_ == 1002; }));
}

TEST_F(WebSocketTest, TheHandlerMayLeaveAndAnExceptionIsAFault) {
  start();
  for (const auto& [word, code] : {std::pair("leave", "\x03\xe8"), std::pair("throw", "\x03\xf3")}) {
    const Client client = connect();
    client.send(kUpgrade + frame(1, word));
    EXPECT_THAT(client.receive(std::string("\x88\x02") + code), EndsWith(std::string("\x88\x02") + code))
        << word;
    client.send(close_frame(1000));
    EXPECT_EQ(client.receive_all(), "");
  }
  EXPECT_EQ(server_->stats().handler_threw, 1U);
}

TEST_F(WebSocketTest, WhoReadsTooSlowlyIsTold) {
  handler_.limits.max_buffered_bytes = 4U << 20;
  start();
  const Client client = connect();
  client.send(kUpgrade + frame(1, "flood"));
  client.send(close_frame(1000));  // its end is awaited for a while
  const std::string all = client.receive_all();
  EXPECT_THAT(all.substr(all.size() - 30), EndsWith("\x03\xf5what was sent is not read"));
  EXPECT_TRUE(eventually([this] { return handler_.code_ == close_code::kTryAgainLater; }));
}

TEST_F(WebSocketTest, WhoReadsNothingIsCutOff) {
  handler_.limits.close_timeout = 100ms;
  start();
  const Client client = connect();
  client.send(kUpgrade + frame(1, "flood"));
  EXPECT_TRUE(eventually([this] { return handler_.code_ == close_code::kTryAgainLater; }));
  EXPECT_TRUE(eventually([this] { return server_->stats().connections == 0; }));
  EXPECT_EQ(handler_.unsent_, 1);
}

TEST_F(WebSocketTest, ASilentClientIsPingedAndThenGone) {
  handler_.limits.ping_after = 50ms;
  handler_.limits.patience = 400ms;
  start();
  const Client client = connect();
  client.send(kUpgrade);
  EXPECT_THAT(client.receive(std::string("\x89\0", 2)), EndsWith(std::string("\x89\0", 2)));
  client.send(frame(10, ""));
  EXPECT_EQ(client.receive(std::string("\x89\0", 2)), std::string("\x89\0", 2));
  EXPECT_EQ(client.receive_all(), "");
  EXPECT_TRUE(eventually([this] { return handler_.code_ == close_code::kAbnormal; }));
}

TEST_F(WebSocketTest, AServerThatDrainsSaysThatItGoes) {
  start();
  auto client = std::make_unique<Client>(server_->addresses().front());
  client->send(kUpgrade);
  (void)client->receive("\r\n\r\n");
  EXPECT_TRUE(eventually([this] { return handler_.open_ == 1; }));
  std::thread draining([this] { EXPECT_TRUE(server_->drain(std::chrono::steady_clock::now() + 10s)); });
  EXPECT_THAT(client->receive("stopping"), HasSubstr("\x03\xe9the server is stopping"));
  client->send(close_frame(1001));
  EXPECT_EQ(client->receive_all(), "");
  client.reset();  // the server waits a moment for that, so that its last frame is not lost
  draining.join();
  EXPECT_EQ(handler_.code_, close_code::kGoingAway);
}

TEST_F(WebSocketTest, AServerThatStopsEndsThem) {
  start();
  const Client client = connect();
  client.send(kUpgrade);
  EXPECT_TRUE(eventually([this] { return handler_.open_ == 1; }));
  server_->stop();
  EXPECT_EQ(handler_.open_, 0);
}

TEST_F(WebSocketTest, AClientThatVanishesEndsIt) {
  start();
  {
    const Client client = connect();
    client.send(kUpgrade);
    EXPECT_TRUE(eventually([this] { return handler_.open_ == 1; }));
  }
  EXPECT_TRUE(eventually([this] { return handler_.open_ == 0 && server_->stats().connections == 0; }));
  EXPECT_EQ(handler_.code_, close_code::kAbnormal);
}

}  // namespace
}  // namespace waybill::http
