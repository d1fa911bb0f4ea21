#include "upstream/shared_calls.h"

#include <deque>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace waybill::upstream {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr Hash128 kKey{1, 2}, kPayload{3, 4};

Error error(ErrorCode code) { return {.code = code, .message = "no", .field = {}}; }

// A client, and the call to a provider that it makes when it leads, which the test steers.
class Client final : public SharedCaller, public Reply {
 public:
  explicit Client(http::EventLoop& loop) : loop_(loop) {}

  void ask(SharedCalls& calls, Hash128 key = kKey, Hash128 payload = kPayload,
           TimePoint deadline = TimePoint::max()) {
    const SharedAsk asked = {.key = key,
                             .payload = payload,
                             .lifetime = 1h,
                             .deadline = deadline,
                             .cancellation = cancellation,
                             .loop = loop_};
    boost::asio::co_spawn(loop_.context(), calls.run(asked, *this, *this),
                          [this](const std::exception_ptr& thrown, Outcome got) {
                            if (thrown == nullptr) {
                              outcome = std::move(got);
                            } else {
                              threw = true;
                            }
                          });
  }
  void hang_up() {
    loop_.post([this] { cancellation.request(); });
  }

  // Steers its call.
  void send(std::string events) { tell({.events = std::move(events), .outcome = {}, .breaks = false}); }
  void finish(Outcome end) { tell({.events = {}, .outcome = std::move(end), .breaks = false}); }
  void answer(std::string body) {
    Outcome end;
    end.body = std::move(body);
    end.facts.attempts = 1;
    end.facts.model = "m";
    end.usage = {.prompt = 5, .cached_prompt = 0, .completion = 6};
    end.cost_nano_usd = 7;
    finish(std::move(end));
  }
  void end_stream() {
    Outcome end;
    end.began = true;
    finish(std::move(end));
  }
  void fail(ErrorCode code, bool began = false) {
    Outcome end;
    end.error = error(code);
    end.began = began;
    finish(std::move(end));
  }
  void break_off() { tell({.events = {}, .outcome = {}, .breaks = true}); }

  http::Cancellation cancellation;
  std::optional<Status> admitted;  // what joined() says; nothing: yes
  bool takes = true;               // what is written to it
  // What became of it.
  std::vector<AnswerWay> ways;
  std::string written;
  unsigned begun = 0, abandoned = 0;
  bool leads = false, threw = false;
  std::optional<Outcome> outcome;

  Status joined(AnswerWay way) override {
    ways.push_back(way);
    return admitted ? *admitted : Status{};
  }
  http::Task<Outcome> lead(Reply& reply) override {
    leads = true;
    bool began = false;
    for (;;) {
      if (told_.empty()) {
        pending_.emplace();
        (void)co_await pending_->get();
      }
      Told told = std::move(told_.front());
      told_.pop_front();
      if (told.breaks) throw std::runtime_error("broken");
      if (told.outcome) co_return std::move(*told.outcome);
      if (!std::exchange(began, true)) {
        AnswerFacts facts;
        facts.model = "m";
        facts.attempts = 1;
        reply.begin(facts);
      }
      const bool taken = co_await reply.write(told.events);
      if (!taken) {
        Outcome gone;
        gone.began = true;
        gone.error = error(ErrorCode::kCancelled);
        co_return gone;
      }
    }
  }
  void abandon() override {
    ++abandoned;
    fail(ErrorCode::kCancelled);
  }
  void begin(const AnswerFacts& facts) override {
    ++begun;
    EXPECT_EQ(facts.model, "m");
    EXPECT_EQ(facts.attempts, leads ? 1U : 0U);
  }
  http::Task<bool> write(std::string_view events) override {
    if (takes) written.append(events);
    co_return takes;
  }

 private:
  struct Told {
    std::string events;
    std::optional<Outcome> outcome;
    bool breaks = false;
  };
  void tell(Told told) {
    loop_.post([this, told = std::move(told)]() mutable {
      told_.push_back(std::move(told));
      if (pending_) pending_->set(true);
    });
  }

  http::EventLoop& loop_;
  std::deque<Told> told_;
  std::optional<http::Pending<bool>> pending_;
};

// Two loops, which the test turns.
class SharedCallsTest : public ::testing::Test {
 protected:
  SharedCallsTest() {
    for (SharedCalls* each : {&cached_, &keyed_}) each->limit(4U << 20);
  }
  void turn() {
    while (here_.context().poll() + there_.context().poll() > 0) continue;
  }

  http::EventLoop here_{0, {}}, there_{1, {}};
  SharedCalls cached_{ErrorPolicy::kForget}, keyed_{ErrorPolicy::kKeep};
  Client a_{here_}, b_{there_}, c_{here_};
};

TEST_F(SharedCallsTest, AnAnswerIsGivenAgain) {
  a_.ask(cached_);
  a_.answer("hello");
  turn();
  b_.ask(cached_);
  turn();
  ASSERT_TRUE(a_.outcome && b_.outcome);
  EXPECT_EQ(b_.outcome->body, "hello");
  EXPECT_EQ(b_.ways, std::vector{AnswerWay::kKept});
  EXPECT_EQ(b_.outcome->facts.model, "m");
  EXPECT_EQ(a_.outcome->facts.attempts, 1U);
  EXPECT_EQ(b_.outcome->facts.attempts, 0U);
  EXPECT_EQ(b_.outcome->usage, Usage{});
  EXPECT_EQ(b_.outcome->cost_nano_usd, 0U);
  EXPECT_GT(cached_.bytes(), 0U);
}

TEST_F(SharedCallsTest, EqualCallsAtATimeAreOne) {
  a_.ask(cached_);
  b_.ask(cached_);
  c_.ask(cached_);
  turn();
  EXPECT_FALSE(b_.outcome);
  a_.answer("hello");
  turn();
  for (Client* each : {&b_, &c_}) {
    ASSERT_TRUE(each->outcome);
    EXPECT_EQ(each->outcome->body, "hello");
    EXPECT_EQ(each->ways, std::vector{AnswerWay::kShared});
  }
}

TEST_F(SharedCallsTest, OtherKeysAreOtherCalls) {
  a_.ask(cached_);
  b_.ask(cached_, {1, 3});
  turn();
  EXPECT_TRUE(a_.leads && b_.leads);
  a_.answer("a");
  b_.answer("b");
  turn();
  EXPECT_EQ(b_.outcome->body, "b");
}

TEST_F(SharedCallsTest, AStreamIsFollowedFromItsFirstEventOn) {
  a_.ask(cached_);
  a_.send("one ");
  turn();
  b_.ask(cached_);
  turn();
  EXPECT_EQ(b_.written, "one ");
  a_.send("two ");
  turn();
  EXPECT_EQ(b_.written, "one two ");
  EXPECT_FALSE(b_.outcome);
  a_.end_stream();
  turn();
  ASSERT_TRUE(b_.outcome);
  EXPECT_FALSE(b_.outcome->error);
  EXPECT_TRUE(b_.outcome->began);
  c_.ask(cached_);
  turn();
  EXPECT_EQ(c_.written, "one two ");
  EXPECT_EQ(c_.begun, 1U);
  EXPECT_EQ(c_.ways, std::vector{AnswerWay::kKept});
}

TEST_F(SharedCallsTest, ACallGoesOnForThoseWhoFollow) {
  a_.ask(cached_);
  b_.ask(cached_);
  a_.send("one ");
  turn();
  a_.hang_up();
  turn();
  EXPECT_EQ(a_.abandoned, 0U);
  a_.send("two ");
  a_.end_stream();
  turn();
  EXPECT_EQ(a_.written, "one ");
  EXPECT_EQ(b_.written, "one two ");
  EXPECT_FALSE(b_.outcome->error);
  EXPECT_EQ(a_.outcome->error->code, ErrorCode::kCancelled);
}

TEST_F(SharedCallsTest, ACallThatNobodyWaitsForIsCancelled) {
  a_.ask(cached_);
  turn();
  a_.hang_up();
  turn();
  EXPECT_EQ(a_.abandoned, 1U);
  EXPECT_EQ(a_.outcome->error->code, ErrorCode::kCancelled);
  b_.ask(cached_);
  turn();
  EXPECT_TRUE(b_.leads);
  b_.answer("");
  turn();
}

TEST_F(SharedCallsTest, TheLastWhoLeavesCancelsIt) {
  a_.ask(cached_);
  b_.ask(cached_);
  c_.ask(cached_);
  turn();
  a_.hang_up();
  b_.hang_up();
  turn();
  EXPECT_EQ(a_.abandoned, 0U);
  EXPECT_EQ(b_.outcome->error->code, ErrorCode::kCancelled);
  c_.hang_up();
  turn();
  EXPECT_EQ(a_.abandoned, 1U);
}

TEST_F(SharedCallsTest, WhoComesWhileACallIsBeingCancelledMakesAnother) {
  a_.ask(cached_);
  turn();
  b_.ask(cached_);
  a_.send("one ");
  turn();
  a_.hang_up();
  turn();
  b_.hang_up();
  while (there_.context().poll() > 0) continue;  // the news is on its way to the leader
  EXPECT_EQ(a_.abandoned, 0U);
  Client d(there_);
  d.ask(cached_);
  while (there_.context().poll() > 0) continue;
  EXPECT_EQ(a_.abandoned, 0U);
  turn();
  EXPECT_EQ(a_.abandoned, 1U);
  EXPECT_TRUE(d.leads);
  d.answer("d");
  turn();
  EXPECT_EQ(d.outcome->body, "d");
  c_.ask(cached_);
  turn();
  EXPECT_EQ(c_.outcome->body, "d");
}

TEST_F(SharedCallsTest, ALeaderThatTakesNothingIsNoLongerWrittenTo) {
  a_.ask(cached_);
  a_.takes = false;
  turn();
  b_.ask(cached_);
  turn();
  a_.send("one ");
  turn();
  EXPECT_FALSE(a_.outcome);
  b_.hang_up();
  turn();
  EXPECT_EQ(a_.outcome->error->code, ErrorCode::kCancelled);
}

TEST_F(SharedCallsTest, AFailureIsNotShared) {
  a_.ask(cached_);
  b_.ask(cached_);
  turn();
  a_.fail(ErrorCode::kUpstreamFailed);
  turn();
  EXPECT_EQ(a_.outcome->error->code, ErrorCode::kUpstreamFailed);
  EXPECT_TRUE(b_.leads);
  EXPECT_EQ(b_.ways, (std::vector{AnswerWay::kShared, AnswerWay::kLed}));
  b_.answer("better");
  turn();
  EXPECT_EQ(b_.outcome->body, "better");
}

TEST_F(SharedCallsTest, ARefusalIsSharedAndNotKept) {
  a_.ask(cached_);
  b_.ask(cached_);
  turn();
  Outcome refused;
  refused.error = error(ErrorCode::kInvalidInput);
  refused.status = 400;
  refused.body = "why";
  a_.finish(std::move(refused));
  turn();
  EXPECT_EQ(b_.outcome->status, 400U);
  EXPECT_EQ(b_.outcome->body, "why");
  c_.ask(cached_);
  turn();
  EXPECT_TRUE(c_.leads);
  c_.answer("");
  turn();
}

TEST_F(SharedCallsTest, AStreamThatIsCutIsCutForAll) {
  a_.ask(cached_);
  b_.ask(cached_);
  turn();
  a_.send("one ");
  a_.send("error ");
  a_.fail(ErrorCode::kUpstreamFailed, true);
  turn();
  EXPECT_EQ(b_.written, "one error ");
  EXPECT_EQ(b_.outcome->error->code, ErrorCode::kUpstreamFailed);
  c_.ask(cached_);
  turn();
  EXPECT_TRUE(c_.leads);
  c_.answer("");
  turn();
}

TEST_F(SharedCallsTest, ALeaderThatBreaksOffLeavesNobodyWaiting) {
  a_.ask(cached_);
  b_.ask(cached_);
  turn();
  a_.break_off();
  turn();
  EXPECT_TRUE(a_.threw);
  EXPECT_TRUE(b_.leads);
  c_.ask(cached_);
  b_.send("one ");
  b_.break_off();
  turn();
  EXPECT_THAT(c_.written, HasSubstr("one data: {\"error\""));
  EXPECT_EQ(c_.outcome->error->code, ErrorCode::kInternal);
}

TEST_F(SharedCallsTest, AKeyKeepsFailuresToo) {
  a_.ask(keyed_);
  b_.ask(keyed_);
  turn();
  a_.fail(ErrorCode::kUpstreamTimeout);
  turn();
  c_.ask(keyed_);
  turn();
  for (Client* each : {&b_, &c_}) {
    ASSERT_TRUE(each->outcome);
    EXPECT_EQ(each->outcome->error->code, ErrorCode::kUpstreamTimeout);
    EXPECT_FALSE(each->leads);
  }
}

TEST_F(SharedCallsTest, AKeyKeepsAStreamThatWasCut) {
  a_.ask(keyed_);
  a_.send("one error ");
  a_.fail(ErrorCode::kUpstreamFailed, true);
  turn();
  b_.ask(keyed_);
  turn();
  EXPECT_EQ(b_.written, "one error ");
  EXPECT_EQ(b_.outcome->error->code, ErrorCode::kUpstreamFailed);
  EXPECT_FALSE(b_.leads);
}

TEST_F(SharedCallsTest, AKeyDoesNotKeepWhatWasNotTried) {
  for (const ErrorCode code : {ErrorCode::kCancelled, ErrorCode::kDeadlineExceeded, ErrorCode::kRateLimited,
                               ErrorCode::kOverloaded, ErrorCode::kQuotaExceeded, ErrorCode::kShuttingDown}) {
    Client first(here_), next(there_);
    const Hash128 key = {static_cast<std::uint64_t>(code), 0};
    first.ask(keyed_, key);
    first.fail(code);
    turn();
    next.ask(keyed_, key);
    turn();
    EXPECT_TRUE(next.leads) << to_string(code);
    next.fail(code);
    turn();
  }
}

TEST_F(SharedCallsTest, AKeyWithAnotherPayloadIsRefused) {
  a_.ask(keyed_);
  turn();
  b_.ask(keyed_, kKey, {3, 5});
  turn();
  EXPECT_EQ(b_.outcome->error->code, ErrorCode::kKeyReused);
  a_.answer("");
  turn();
  c_.ask(keyed_, kKey, {3, 5});
  turn();
  EXPECT_EQ(c_.outcome->error->code, ErrorCode::kKeyReused);
  EXPECT_TRUE(c_.ways.empty());
}

TEST_F(SharedCallsTest, WhoMayNotHaveItIsTold) {
  a_.admitted = std::unexpected(error(ErrorCode::kRateLimited));
  a_.ask(cached_);
  turn();
  EXPECT_EQ(a_.outcome->error->code, ErrorCode::kRateLimited);
  EXPECT_FALSE(a_.leads);
  b_.ask(cached_);
  turn();
  EXPECT_TRUE(b_.leads);
  c_.admitted = std::unexpected(error(ErrorCode::kRateLimited));
  c_.ask(cached_);
  turn();
  EXPECT_EQ(c_.outcome->error->code, ErrorCode::kRateLimited);
  b_.answer("");
  turn();
}

TEST_F(SharedCallsTest, WhoFollowsWaitsUntilItsOwnDeadline) {
  a_.ask(cached_);
  turn();
  b_.ask(cached_, kKey, kPayload, std::chrono::steady_clock::now() + 30ms);
  while (!b_.outcome) turn();
  EXPECT_EQ(b_.outcome->error->code, ErrorCode::kDeadlineExceeded);
  EXPECT_FALSE(a_.outcome);
  a_.answer("");
  turn();
}

TEST_F(SharedCallsTest, AStreamEndsWithAnErrorAtTheDeadlineOfWhoFollows) {
  a_.ask(cached_);
  a_.send("one ");
  turn();
  b_.ask(cached_, kKey, kPayload, std::chrono::steady_clock::now() + 30ms);
  while (!b_.outcome) turn();
  EXPECT_THAT(b_.written, HasSubstr("one data: {\"error\""));
  EXPECT_THAT(b_.written, HasSubstr("deadline_exceeded"));
  a_.end_stream();
  turn();
}

TEST_F(SharedCallsTest, AStreamThatIsTooLargeIsNotKept) {
  cached_.limit(4000);
  a_.ask(cached_);
  a_.send("one ");
  turn();
  b_.ask(cached_);
  turn();
  const std::string large(3000, 'x');
  a_.send(large);
  turn();
  EXPECT_EQ(b_.written, "one " + large);  // who follows already has it all
  c_.ask(cached_);
  turn();
  EXPECT_TRUE(c_.leads);
  a_.end_stream();
  c_.end_stream();
  turn();
  EXPECT_FALSE(b_.outcome->error);
}

TEST_F(SharedCallsTest, MemoryOfAStreamThatNobodyFollowsIsBounded) {
  cached_.limit(100'000);
  a_.ask(cached_);
  for (int i = 0; i < 100; ++i) {
    a_.send(std::string(20'000, 'x'));
    turn();
    EXPECT_LE(cached_.bytes(), 100'000U);
  }
  a_.end_stream();
  turn();
  EXPECT_EQ(cached_.bytes(), 0U);
  EXPECT_EQ(a_.written.size(), 2'000'000U);
}

// Loops with threads of their own, for the thread sanitizer.
TEST(SharedCalls, ManyAtATime) {
  SharedCalls calls(ErrorPolicy::kForget);
  calls.limit(1U << 20);
  constexpr std::size_t kRounds = 50, kClients = 16;
  std::deque<http::EventLoop> loops;
  for (unsigned i = 0; i < 4; ++i) loops.emplace_back(i, http::EventLoopHooks{}).start();
  std::atomic<std::size_t> left = 0;
  for (std::size_t round = 0; round < kRounds; ++round) {
    std::deque<Client> clients;
    left = kClients;
    for (std::size_t i = 0; i < kClients; ++i) clients.emplace_back(loops[i % loops.size()]);
    for (std::size_t i = 0; i < kClients; ++i) {
      Client& client = clients[i];
      http::EventLoop& loop = loops[i % loops.size()];
      client.send("one ");
      client.send("two ");
      client.end_stream();
      loop.post([&client, &calls, round] { client.ask(calls, {round, 0}); });
      if (i % 5 == 4) client.hang_up();
    }
    for (std::size_t i = 0; i < kClients; ++i) {
      bool done = false;
      while (!done) {
        std::atomic<bool> looked = false;
        loops[i % loops.size()].post([&] {
          done = clients[i].outcome.has_value();
          looked = true;
          looked.notify_one();
        });
        looked.wait(false);
      }
    }
    for (std::size_t i = 0; i < kClients; ++i) {
      if (i % 5 == 4) continue;
      EXPECT_EQ(clients[i].written, "one two ") << round << " " << i;
    }
  }
  for (http::EventLoop& loop : loops) loop.stop();
}

}  // namespace
}  // namespace waybill::upstream
