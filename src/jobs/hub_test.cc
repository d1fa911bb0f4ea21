#include "jobs/hub.h"

#include <atomic>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace waybill::jobs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

store::Change change(const Uuid& id, store::State state, std::string queue = "q", std::string caller = "c") {
  store::Change change;
  change.id = id;
  change.state = state;
  change.queue = std::move(queue);
  change.caller = std::move(caller);
  return change;
}

class HubTest : public testing::Test {
 protected:
  HubTest() { loop_.start(); }
  ~HubTest() override { loop_.stop(); }

  // On the loop's thread, to its end.
  template <class Work>
  void on_loop(Work work, http::EventLoop* loop = nullptr) {
    std::promise<void> done;
    (loop != nullptr ? *loop : loop_).post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }
  void settle() {
    on_loop([] {});
  }
  Hub::Notify note(std::string name) {
    return [this, name = std::move(name)](const store::Change& news) {
      told_.push_back(name + ":" + std::string(store::to_string(news.state)));
    };
  }

  http::EventLoop loop_{0, {}};
  Hub hub_;
  std::vector<std::string> told_;  // the loop's thread
};

TEST_F(HubTest, TellsThoseThatAskedAndNobodyElse) {
  const Uuid a = uuid_v7(), b = uuid_v7();
  std::vector<Hub::Subscription> held;
  on_loop([&] {
    held.push_back(hub_.watch(a, loop_, note("a")));
    held.push_back(hub_.watch(a, loop_, note("a2")));
    held.push_back(hub_.watch(b, loop_, note("b")));
    held.push_back(hub_.watch_all("", "", loop_, note("all")));
    held.push_back(hub_.watch_all("q", "", loop_, note("q")));
    held.push_back(hub_.watch_all("", "c", loop_, note("c")));
    held.push_back(hub_.watch_all("q", "c", loop_, note("qc")));
    held.push_back(hub_.watch_all("q", "other", loop_, note("no")));
    held.push_back(hub_.watch_all("other", "", loop_, note("no")));
  });
  EXPECT_EQ(hub_.subscriptions(), 9U);
  hub_.publish(std::vector{change(a, store::State::kRunning)});
  on_loop([&] {
    EXPECT_THAT(told_, UnorderedElementsAre("a:running", "a2:running", "all:running", "q:running",
                                            "c:running", "qc:running"));
    told_.clear();
  });
  // Without a caller: once for each, too.
  hub_.publish(std::vector{change(b, store::State::kDead, "q", "")});
  on_loop([&] {
    EXPECT_THAT(told_, UnorderedElementsAre("b:dead", "all:dead", "q:dead"));
    held.clear();
  });
  EXPECT_EQ(hub_.subscriptions(), 0U);
}

TEST_F(HubTest, TellsInTheOrderOfTheChanges) {
  const Uuid a = uuid_v7();
  std::optional<Hub::Subscription> held;
  on_loop([&] { held.emplace(hub_.watch(a, loop_, note("a"))); });
  hub_.publish(std::vector{change(a, store::State::kQueued), change(uuid_v7(), store::State::kDead),
                           change(a, store::State::kRunning)});
  hub_.publish(std::vector{change(a, store::State::kCompleted)});
  on_loop([&] {
    EXPECT_THAT(told_, ElementsAre("a:queued", "a:running", "a:completed"));
    held.reset();
  });
}

TEST_F(HubTest, NothingRunsAfterASubscriptionHasEnded) {
  const Uuid a = uuid_v7();
  std::optional<Hub::Subscription> first, second;
  on_loop([&] {
    // Ends itself, and the other, while news for both is on its way.
    first.emplace(hub_.watch(a, loop_, [&](const store::Change&) {
      told_.push_back("first");
      first.reset();
      second.reset();
    }));
    second.emplace(hub_.watch_all("", "", loop_, note("second")));
  });
  hub_.publish(std::vector{change(a, store::State::kRunning), change(a, store::State::kCompleted)});
  settle();
  on_loop([&] { EXPECT_THAT(told_, ElementsAre("first")); });
  EXPECT_EQ(hub_.subscriptions(), 0U);
}

TEST_F(HubTest, ASubscriptionMoves) {
  const Uuid a = uuid_v7();
  Hub::Subscription held;
  on_loop([&] {
    held = hub_.watch(a, loop_, note("a"));
    held = hub_.watch(a, loop_, note("again"));
  });
  EXPECT_EQ(hub_.subscriptions(), 1U);
  hub_.publish(std::vector{change(a, store::State::kRunning)});
  on_loop([&] {
    EXPECT_THAT(told_, ElementsAre("again:running"));
    held = {};
  });
  EXPECT_EQ(hub_.subscriptions(), 0U);
}

// What 10,000 that wait add to a publish that concerns one of them: a look-up, whatever their number.
TEST_F(HubTest, ManyThatWaitAreNoWorkForTheOthers) {
  constexpr std::size_t kMany = 10'000;
  std::vector<Uuid> ids;
  for (std::size_t i = 0; i < kMany; ++i) ids.push_back(uuid_v7());
  std::vector<Hub::Subscription> held;
  std::size_t told = 0;
  on_loop([&] {
    for (const Uuid& id : ids) held.push_back(hub_.watch(id, loop_, [&told](const auto&) { ++told; }));
  });
  hub_.publish(std::vector{change(ids[7], store::State::kCompleted)});
  on_loop([&] { EXPECT_EQ(told, 1U); });
  std::vector<store::Change> all;
  for (const Uuid& id : ids) all.push_back(change(id, store::State::kCompleted));
  hub_.publish(all);
  on_loop([&] {
    EXPECT_EQ(told, kMany + 1);
    held.clear();
  });
}

TEST_F(HubTest, ComesAndGoesOnManyLoopsWhileNewsComes) {
  constexpr std::size_t kIds = 64;
  std::vector<Uuid> ids;
  for (std::size_t i = 0; i < kIds; ++i) ids.push_back(uuid_v7());
  std::vector<std::unique_ptr<http::EventLoop>> loops;
  for (unsigned i = 0; i < 3; ++i) {
    loops.push_back(std::make_unique<http::EventLoop>(i, http::EventLoopHooks{}));
    loops.back()->start();
  }
  std::atomic<bool> ended{false};
  std::thread writer([&] {
    while (!ended) {
      std::vector<store::Change> news;
      for (const Uuid& id : ids) news.push_back(change(id, store::State::kRunning));
      hub_.publish(news);
      std::this_thread::yield();
    }
  });
  std::atomic<std::size_t> told{0};
  for (int round = 0; round < 200; ++round) {
    http::EventLoop* loop = loops[static_cast<std::size_t>(round) % loops.size()].get();
    std::vector<Hub::Subscription> held;
    on_loop(
        [&] {
          for (const Uuid& id : ids) held.push_back(hub_.watch(id, *loop, [&told](const auto&) { ++told; }));
          held.push_back(hub_.watch_all("q", "", *loop, [&told](const auto&) { ++told; }));
        },
        loop);
    on_loop([&] { held.clear(); }, loop);
  }
  ended = true;
  writer.join();
  EXPECT_EQ(hub_.subscriptions(), 0U);
  for (const auto& loop : loops) loop->stop();
}

}  // namespace
}  // namespace waybill::jobs
