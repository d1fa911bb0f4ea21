#include "store/writer.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <latch>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace waybill::store {
namespace {

// Remembers what was committed; refuses, or waits, as it is told.
class FakeStore final : public Store {
 public:
  Status flush() override {
    const std::lock_guard lock(mutex_);
    if (flush_refusal_) return fail(*flush_refusal_, "as told");
    return {};
  }
  Result<Committed> apply(std::span<const Command> commands, Time now) override {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_; });
    --inside_;
    if (commands.empty()) ++probes_;
    changed_.notify_all();
    if (refusal_) return fail(*refusal_, "as told");
    Committed committed;
    std::vector<std::string> batch;
    for (const Command& command : commands) {
      const auto& pause = std::get<Pause>(command);
      batch.push_back(pause.queue);
      committed.replies.push_back(make_reply<Pause>(pause.paused));
      committed.changes.push_back({.queue = pause.queue, .run_after = now});
    }
    batches_.push_back(std::move(batch));
    return committed;
  }

  void hold(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  void refuse(std::optional<ErrorCode> code) {
    const std::lock_guard lock(mutex_);
    refusal_ = code;
  }
  void refuse_flush(std::optional<ErrorCode> code) {
    const std::lock_guard lock(mutex_);
    flush_refusal_ = code;
  }
  void wait_until_inside() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return inside_ > 0; });
  }
  void wait_for_probes(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return probes_ >= count; });
  }
  std::vector<std::vector<std::string>> batches() {
    const std::lock_guard lock(mutex_);
    return batches_;
  }

  Result<std::optional<Job>> find(const Uuid&) override { return std::nullopt; }
  Result<std::optional<std::string>> body(const Uuid&) override { return std::nullopt; }
  Result<std::optional<JobResult>> result(const Uuid&) override { return std::nullopt; }
  Result<Events> events(const Uuid&, std::uint64_t, std::size_t) override { return Events{}; }
  Result<std::vector<Job>> list(const JobFilter&) override { return std::vector<Job>(); }
  Result<std::vector<Ending>> endings(std::uint64_t, std::size_t) override { return std::vector<Ending>(); }
  Result<std::vector<Depth>> depths() override { return std::vector<Depth>(); }
  Result<std::vector<QueueState>> queues() override { return std::vector<QueueState>(); }
  Result<std::vector<DeliveryRecord>> deliveries(std::optional<Uuid>, bool, std::size_t) override {
    return std::vector<DeliveryRecord>();
  }
  Result<std::vector<std::pair<std::string, std::string>>> remembered(std::string_view) override {
    return std::vector<std::pair<std::string, std::string>>();
  }
  Result<StoreStats> stats() override { return StoreStats{}; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0, probes_ = 0;
  bool held_ = false;
  std::optional<ErrorCode> refusal_, flush_refusal_;
  std::vector<std::vector<std::string>> batches_;
};

// Counts how often it is posted to; runs where it is.
class CountingExecutor final : public Executor {
 public:
  void post(std::move_only_function<void()> work) override {
    ++posts;
    work();
  }
  std::atomic<int> posts = 0;
};

// The replies of commands, by name, in the order in which they came.
class Replies {
 public:
  std::move_only_function<void(Result<bool>)> expect(std::string name) {
    return [this, name = std::move(name)](Result<bool> reply) {
      const std::lock_guard lock(mutex_);
      came_.emplace_back(name, reply ? std::optional<ErrorCode>() : reply.error().code);
      if (!reply) last_error_ = reply.error();
      changed_.notify_all();
    };
  }
  std::vector<std::pair<std::string, std::optional<ErrorCode>>> wait(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return came_.size() >= count; });
    return came_;
  }
  Error last_error() {
    const std::lock_guard lock(mutex_);
    return last_error_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<std::string, std::optional<ErrorCode>>> came_;
  Error last_error_;
};

using Names = std::vector<std::string>;

TEST(Writer, MakesOneTransactionOfAllThatWaits) {
  FakeStore store;
  CountingExecutor executor;
  Replies replies;
  std::vector<std::string> changes;
  Writer writer(store, {.on_changes = [&](std::span<const Change> all) {
                  for (const Change& change : all) changes.push_back(change.queue);
                }});
  store.hold(true);
  writer.commit(Pause{"a"}, executor, replies.expect("a"));
  store.wait_until_inside();
  for (const char* name : {"b", "c", "d"}) writer.commit(Pause{name}, executor, replies.expect(name));
  EXPECT_EQ(writer.waiting(), 4U);
  store.hold(false);
  const auto came = replies.wait(4);
  writer.stop();
  EXPECT_EQ(store.batches(), (std::vector<Names>{{"a"}, {"b", "c", "d"}}));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(came[i].first, std::string(1, static_cast<char>('a' + i)));
  EXPECT_EQ(executor.posts, 2);
  EXPECT_EQ(changes, (Names{"a", "b", "c", "d"}));
  EXPECT_EQ(writer.waiting(), 0U);
}

TEST(Writer, CutsWhatWaitsIntoTransactionsOfAtMostMaxBatch) {
  FakeStore store;
  InlineExecutor executor;
  Replies replies;
  Writer writer(store, {.max_batch = 2});
  store.hold(true);
  writer.commit(Pause{"a"}, executor, replies.expect("a"));
  store.wait_until_inside();
  for (const char* name : {"b", "c", "d"}) writer.commit(Pause{name}, executor, replies.expect(name));
  store.hold(false);
  replies.wait(4);
  EXPECT_EQ(store.batches(), (std::vector<Names>{{"a"}, {"b", "c"}, {"d"}}));
}

TEST(Writer, RefusesWhatWouldMakeTheQueueLongerThanItsBound) {
  FakeStore store;
  InlineExecutor executor;
  Replies replies;
  Writer writer(store, {.max_waiting = 2});
  store.hold(true);
  writer.commit(Pause{"a"}, executor, replies.expect("a"));
  store.wait_until_inside();
  writer.commit(Pause{"b"}, executor, replies.expect("b"));
  writer.commit(Pause{"c"}, executor, replies.expect("c"));
  const auto came = replies.wait(1);
  EXPECT_EQ(came[0].first, "c");
  EXPECT_EQ(came[0].second, ErrorCode::kOverloaded);
  EXPECT_GT(replies.last_error().retry_after, std::chrono::nanoseconds::zero());
  store.hold(false);
  replies.wait(3);
  writer.stop();
  EXPECT_EQ(store.batches(), (std::vector<Names>{{"a"}, {"b"}}));
}

TEST(Writer, StopCommitsWhatWaitsAndTakesNoMore) {
  FakeStore store;
  InlineExecutor executor;
  Replies replies;
  Writer writer(store, {});
  store.hold(true);
  writer.commit(Pause{"a"}, executor, replies.expect("a"));
  store.wait_until_inside();
  writer.commit(Pause{"b"}, executor, replies.expect("b"));
  std::thread stopper([&] { writer.stop(); });
  store.hold(false);
  stopper.join();
  writer.commit(Pause{"c"}, executor, replies.expect("c"));
  const auto came = replies.wait(3);
  EXPECT_EQ(came[1].second, std::nullopt);
  EXPECT_EQ(came[2].second, ErrorCode::kShuttingDown);
  EXPECT_EQ(store.batches(), (std::vector<Names>{{"a"}, {"b"}}));
}

TEST(Writer, AllOfATransactionThatFailsAreToldSo) {
  FakeStore store;
  InlineExecutor executor;
  Replies replies;
  int told = 0;
  Writer writer(store, {.on_changes = [&](auto) { ++told; }});
  store.refuse(ErrorCode::kStoreUnavailable);
  store.hold(true);
  writer.commit(Pause{"a"}, executor, replies.expect("a"));
  store.wait_until_inside();
  writer.commit(Pause{"b"}, executor, replies.expect("b"));
  writer.commit(Pause{"c"}, executor, replies.expect("c"));
  store.hold(false);
  for (const auto& [name, error] : replies.wait(3)) EXPECT_EQ(error, ErrorCode::kStoreUnavailable) << name;
  EXPECT_FALSE(writer.is_writable());
  writer.stop();
  EXPECT_EQ(told, 0);
}

TEST(Writer, NobodyIsToldOfWhatWasNotFlushed) {
  FakeStore store;
  Replies replies;
  InlineExecutor executor;
  std::atomic<int> told = 0;
  Writer writer(store, {.on_changes = [&told](auto /*changes*/) { ++told; }});
  store.refuse_flush(ErrorCode::kStoreUnavailable);
  writer.commit(Pause{"a"}, executor, replies.expect("a"));
  EXPECT_EQ(replies.wait(1)[0].second, ErrorCode::kStoreUnavailable);
  EXPECT_EQ(store.batches().at(0), Names{"a"}) << "it was applied";
  EXPECT_EQ(told, 0);
  EXPECT_FALSE(writer.is_writable());
  store.refuse_flush(std::nullopt);
  writer.commit(Pause{"b"}, executor, replies.expect("b"));
  EXPECT_EQ(replies.wait(2)[1].second, std::nullopt);
  EXPECT_EQ(told, 1);
}

TEST(Writer, FindsOutByItselfThatTheDiskTakesWritesAgain) {
  FakeStore store;
  InlineExecutor executor;
  Replies replies;
  Writer writer(store, {});
  EXPECT_TRUE(writer.is_writable());
  store.refuse(ErrorCode::kStoreUnavailable);
  writer.commit(Pause{"a"}, executor, replies.expect("a"));
  replies.wait(1);
  store.wait_for_probes(1);
  EXPECT_FALSE(writer.is_writable());
  store.refuse(std::nullopt);
  while (!writer.is_writable()) std::this_thread::yield();
  store.wait_for_probes(2);
}

TEST(Writer, GivesTheTimeItWasGiven) {
  FakeStore store;
  InlineExecutor executor;
  Replies replies;
  Time seen = 0;
  Writer writer(store, {.now = [] { return Time{42}; },
                        .on_changes = [&](std::span<const Change> all) { seen = all[0].run_after; }});
  writer.commit(Pause{"a"}, executor, replies.expect("a"));
  replies.wait(1);
  writer.stop();
  EXPECT_EQ(seen, 42);
}

TEST(Writer, AnswersEachOfManyThreadsOnce) {
  FakeStore store;
  InlineExecutor executor;
  Writer writer(store, {.max_waiting = 100, .max_batch = 7});
  constexpr int kThreads = 4, kEach = 500;
  std::atomic<int> done = 0, refused = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        writer.commit(Pause{"q"}, executor, [&](Result<bool> reply) { ++(reply ? done : refused); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  writer.stop();
  EXPECT_EQ(done + refused, kThreads * kEach);
  std::size_t committed = 0;
  for (const Names& batch : store.batches()) {
    EXPECT_LE(batch.size(), 7U);
    committed += batch.size();
  }
  EXPECT_EQ(committed, static_cast<std::size_t>(done));
}

}  // namespace
}  // namespace waybill::store
