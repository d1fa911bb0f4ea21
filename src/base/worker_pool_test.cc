#include "base/worker_pool.h"

#include <atomic>
#include <latch>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <pthread.h>

namespace waybill {
namespace {

TEST(WorkerPool, RunsWorkOnThreadsOfItsName) {
  // What the work uses outlives the pool, which joins its threads.
  std::string name(16, '\0');
  std::latch done(1);
  WorkerPool pool({.name = "text", .threads = 1, .max_waiting = 4});
  ASSERT_TRUE(pool.post([&] {
    pthread_getname_np(pthread_self(), name.data(), name.size());
    done.count_down();
  }));
  done.wait();
  EXPECT_STREQ(name.c_str(), "text-0");
}

TEST(WorkerPool, RefusesWhatDoesNotFitAndLeavesItAlone) {
  std::latch started(1), go(1);
  WorkerPool pool({.name = "text", .threads = 1, .max_waiting = 1});
  ASSERT_TRUE(pool.post([&] {
    started.count_down();
    go.wait();
  }));
  started.wait();
  ASSERT_TRUE(pool.post([] {}));
  int runs = 0;
  WorkerPool::Work third = [&runs] { ++runs; };
  EXPECT_FALSE(pool.post(std::move(third)));
  ASSERT_TRUE(third !=
              nullptr);  // NOLINT(bugprone-use-after-move): that it has not been moved from is the point
  third();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(pool.waiting(), 1U);
  EXPECT_TRUE(pool.resume([] {})) << "what was accepted before goes on";
  go.count_down();
}

TEST(WorkerPool, RunsWhatWaitsWhenItStopsAndTakesNoMore) {
  std::atomic<int> runs = 0;
  WorkerPool pool({.name = "text", .threads = 2, .max_waiting = 100});
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(pool.post([&] { ++runs; })) << i;
  pool.stop();
  EXPECT_EQ(runs, 100);
  EXPECT_FALSE(pool.post([&] { ++runs; }));
  EXPECT_FALSE(pool.resume([&] { ++runs; }));
  EXPECT_EQ(runs, 100);
}

}  // namespace
}  // namespace waybill
