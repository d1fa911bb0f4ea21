#include "http/reactor.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/event_loop.h"
#include "http/stream.h"

namespace waybill::http {
namespace {

// A stream, and the other side of it.
class Pair {
 public:
  explicit Pair(EventLoop& loop) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) ::abort();
    stream.emplace(loop.reactor(), ends[0], nullptr);
    descriptor = ends[0];
    peer_ = ends[1];
  }
  ~Pair() { hang_up(); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  void send(std::string_view bytes) const {
    ASSERT_EQ(::send(peer_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  void take_all() const {
    std::array<char, 65536> ignored;
    while (::recv(peer_, ignored.data(), ignored.size(), 0) > 0) continue;
  }
  void hang_up() {
    if (peer_ >= 0) ::close(std::exchange(peer_, -1));
  }

  std::optional<Stream> stream;
  int descriptor = -1;  // the stream's

 private:
  int peer_ = -1;
};

class ReactorTest : public ::testing::Test {
 protected:
  // What came of a wait; nothing while it lasts.
  using Ended = std::shared_ptr<std::optional<bool>>;
  Ended wait(Stream& stream, IoState what) {
    auto ended = std::make_shared<std::optional<bool>>();
    boost::asio::co_spawn(loop_->context(), stream.wait(what),
                          [ended](const std::exception_ptr& /*error*/, bool ready) { *ended = ready; });
    turn();
    return ended;
  }
  void turn() { loop_->context().poll(); }
  static IoResult read(Stream& stream, std::size_t most = 100) {
    std::string buffer(most, '\0');
    return stream.read(buffer.data(), buffer.size());
  }

  std::optional<EventLoop> loop_{std::in_place, 0U, EventLoopHooks{}};
};

TEST_F(ReactorTest, AWaitEndsWhenBytesCome) {
  Pair pair(*loop_);
  const Ended first = wait(*pair.stream, IoState::kWantRead);
  EXPECT_EQ(*first, std::nullopt);
  pair.send("one");
  turn();
  EXPECT_EQ(*first, true);
  EXPECT_EQ(read(*pair.stream).bytes, 3U);
  const Ended second = wait(*pair.stream, IoState::kWantRead);
  EXPECT_EQ(*second, std::nullopt) << "all was read";
  pair.send("two");
  turn();
  EXPECT_EQ(*second, true);
}

TEST_F(ReactorTest, WhatWasNotReadEndsTheNextWaitAtOnce) {
  Pair pair(*loop_);
  const Ended first = wait(*pair.stream, IoState::kWantRead);
  pair.send("four");
  turn();
  EXPECT_EQ(read(*pair.stream, 4).bytes, 4U) << "more may be there";
  EXPECT_EQ(*wait(*pair.stream, IoState::kWantRead), true);
  EXPECT_EQ(read(*pair.stream).state, IoState::kWantRead);
  EXPECT_EQ(*wait(*pair.stream, IoState::kWantRead), std::nullopt);
}

TEST_F(ReactorTest, BytesThatCameBeforeTheFirstWaitEndIt) {
  Pair pair(*loop_);
  pair.send("early");
  EXPECT_EQ(*wait(*pair.stream, IoState::kWantRead), true);
}

TEST_F(ReactorTest, TheEndThatCameWithTheLastBytesIsStillSeen) {
  Pair pair(*loop_);
  const Ended first = wait(*pair.stream, IoState::kWantRead);
  pair.send("bye");
  pair.hang_up();
  turn();
  EXPECT_EQ(*first, true);
  EXPECT_EQ(read(*pair.stream).bytes, 3U) << "fewer than were asked for";
  EXPECT_EQ(*wait(*pair.stream, IoState::kWantRead), true);
  EXPECT_EQ(read(*pair.stream).state, IoState::kClosed);
}

TEST_F(ReactorTest, AFullSocketIsWaitedForUntilItIsTaken) {
  Pair pair(*loop_);
  const std::string much(1 << 16, 'x');
  while (pair.stream->write(much.data(), much.size()).state == IoState::kDone) continue;
  const Ended ended = wait(*pair.stream, IoState::kWantWrite);
  EXPECT_EQ(*ended, std::nullopt);
  pair.take_all();
  turn();
  EXPECT_EQ(*ended, true);
}

TEST_F(ReactorTest, CancelEndsTheWaitsOnALaterTurn) {
  Pair pair(*loop_);
  const Ended ended = wait(*pair.stream, IoState::kWantRead);
  pair.stream->cancel();
  EXPECT_EQ(*ended, std::nullopt);
  turn();
  EXPECT_EQ(*ended, false);
  pair.send("x");
  EXPECT_EQ(*wait(*pair.stream, IoState::kWantRead), true) << "the socket is as good as before";
}

TEST_F(ReactorTest, CloseEndsTheWaitsAndThoseThatFollow) {
  Pair pair(*loop_);
  const Ended ended = wait(*pair.stream, IoState::kWantRead);
  pair.stream->close();
  turn();
  EXPECT_EQ(*ended, false);
  EXPECT_EQ(*wait(*pair.stream, IoState::kWantRead), false);
}

TEST_F(ReactorTest, TwoMayWaitForTheSame) {
  Pair pair(*loop_);
  const Ended first = wait(*pair.stream, IoState::kWantRead), second = wait(*pair.stream, IoState::kWantRead);
  pair.send("x");
  turn();
  EXPECT_EQ(*first, true);
  EXPECT_EQ(*second, true);
}

TEST_F(ReactorTest, ACallbackNeverComesWithinTheCallThatAsksForIt) {
  Pair pair(*loop_);
  pair.send("x");
  EXPECT_EQ(*wait(*pair.stream, IoState::kWantRead), true);
  std::optional<bool> told;
  pair.stream->on_ready(IoState::kWantRead, [&told](bool ready) { told = ready; });
  EXPECT_EQ(told, std::nullopt);
  turn();
  EXPECT_EQ(told, true);
}

TEST_F(ReactorTest, AHangUpIsToldOnceAndRemembered) {
  Pair pair(*loop_);
  int told = 0;
  pair.stream->watch_peer([&told] { ++told; });
  pair.send("a next request is no hang-up");
  turn();
  EXPECT_EQ(told, 0);
  EXPECT_FALSE(pair.stream->peer_has_closed());
  pair.hang_up();
  turn();
  turn();
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(pair.stream->peer_has_closed());
  pair.stream->watch_peer([&told] { ++told; });
  EXPECT_EQ(told, 2) << "it is known already";
}

TEST_F(ReactorTest, ASocketIsNotToldOnceItIsGone) {
  auto first = std::make_unique<Pair>(*loop_), second = std::make_unique<Pair>(*loop_);
  int told = 0;
  // Whichever is told first destroys the other, for which the same turn has news.
  first->stream->on_ready(IoState::kWantRead, [&](bool ready) {
    if (!ready) return;
    ++told;
    second.reset();
  });
  second->stream->on_ready(IoState::kWantRead, [&](bool ready) {
    if (!ready) return;
    ++told;
    first.reset();
  });
  first->send("x");
  second->send("x");
  turn();
  EXPECT_EQ(told, 1);
  EXPECT_TRUE((first == nullptr) != (second == nullptr));
}

TEST_F(ReactorTest, ADescriptorThatWasGivenAwayIsNotWatchedAnyMore) {
  Pair pair(*loop_);
  std::optional<bool> told;
  pair.stream->on_ready(IoState::kWantRead, [&told](bool ready) { told = ready; });
  const int descriptor = pair.stream->release();
  turn();
  EXPECT_EQ(told, false);
  Stream again(loop_->reactor(), descriptor, nullptr);
  pair.send("x");
  EXPECT_EQ(*wait(again, IoState::kWantRead), true);
}

TEST_F(ReactorTest, WhatCameSinceTheLastTurnIsNotKnownOf) {
  Pair pair(*loop_);
  const Ended ended = wait(*pair.stream, IoState::kWantRead);
  pair.send("x");
  EXPECT_FALSE(pair.stream->is_readable()) << "this costs no system call";
  turn();
  EXPECT_TRUE(pair.stream->is_readable());
  EXPECT_EQ(read(*pair.stream).bytes, 1U);
  EXPECT_FALSE(pair.stream->is_readable());
}

TEST_F(ReactorTest, AClosedStreamIsNotToldWhateverElseHasTheSocket) {
  Pair pair(*loop_);
  int told = 0;
  pair.stream->watch_peer([&told] { ++told; });
  const int of_a_child = ::dup(pair.descriptor);
  pair.stream->close();
  pair.hang_up();
  turn();
  EXPECT_EQ(told, 0);
  ::close(of_a_child);
}

TEST_F(ReactorTest, ASocketThatCannotBeWatchedIsAnExceptionOfWhoWaits) {
  Stream file(loop_->reactor(), ::open("/dev/null", O_RDWR | O_CLOEXEC), nullptr);
  std::exception_ptr thrown;
  boost::asio::co_spawn(loop_->context(), file.wait(IoState::kWantRead),
                        [&thrown](std::exception_ptr error, bool /*ready*/) { thrown = std::move(error); });
  EXPECT_NO_THROW(turn());
  EXPECT_TRUE(thrown);
}

// A read ends at urgent data, with more behind it for which no event comes.
TEST_F(ReactorTest, BytesBehindUrgentDataEndAWait) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener, at, size), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::getsockname(listener, at, &size), 0);
  const int peer = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::connect(peer, at, size), 0);
  Stream stream(loop_->reactor(), ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC),
                nullptr);
  const Ended first = wait(stream, IoState::kWantRead);
  ASSERT_EQ(::send(peer, "before", 6, 0), 6);
  ASSERT_EQ(::send(peer, "!", 1, MSG_OOB), 1);
  ASSERT_EQ(::send(peer, "behind", 6, 0), 6);
  turn();
  EXPECT_EQ(*first, true);
  EXPECT_EQ(read(stream).bytes, 6U);
  EXPECT_EQ(*wait(stream, IoState::kWantRead), true);
  EXPECT_EQ(read(stream).bytes, 6U);
  ::close(peer);
  ::close(listener);
}

TEST_F(ReactorTest, WhatStillWaitsEndsWithTheLoop) {
  const auto alive = std::make_shared<int>(0);
  auto pair = std::make_shared<Pair>(*loop_);
  Stream& stream = *pair->stream;
  boost::asio::co_spawn(
      loop_->context(), stream.wait(IoState::kWantRead),
      [pair = std::move(pair), alive](const std::exception_ptr& /*error*/, bool /*ready*/) {});
  turn();
  EXPECT_EQ(alive.use_count(), 2);
  loop_.reset();
  EXPECT_EQ(alive.use_count(), 1);
}

}  // namespace
}  // namespace waybill::http
