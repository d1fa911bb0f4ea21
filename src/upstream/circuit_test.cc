#include "upstream/circuit.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace waybill::upstream {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const TimePoint kStart{std::chrono::hours(1)};

config::ProviderHealth health() {
  config::ProviderHealth health;
  health.failures = 3;
  health.cooldown = seconds(5);
  health.max_cooldown = seconds(15);
  return health;
}

void open(Circuit& circuit, TimePoint now = kStart) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(circuit.allow(now));
    circuit.failed(now);
  }
  ASSERT_EQ(circuit.state(now), CircuitState::kOpen);
}

TEST(Circuit, OpensAfterFailuresInARow) {
  Circuit circuit(health());
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(circuit.allow(kStart));
    circuit.failed(kStart);
  }
  circuit.succeeded();
  for (int i = 0; i < 2; ++i) circuit.failed(kStart);
  EXPECT_EQ(circuit.state(kStart), CircuitState::kClosed);
  circuit.failed(kStart);
  EXPECT_EQ(circuit.state(kStart), CircuitState::kOpen);
  EXPECT_FALSE(circuit.allow(kStart));
  EXPECT_EQ(circuit.when(), kStart + seconds(5));
}

TEST(Circuit, OpensWhenHalfOfTheCallsFail) {
  Circuit circuit(health());
  for (int i = 0; i < 9; ++i) {
    circuit.failed(kStart);
    circuit.succeeded();
  }
  EXPECT_EQ(circuit.state(kStart), CircuitState::kClosed);
  circuit.failed(kStart);
  EXPECT_EQ(circuit.state(kStart), CircuitState::kOpen);
}

TEST(Circuit, StaysClosedWhenAThirdOfTheCallsFail) {
  Circuit circuit(health());
  for (int i = 0; i < 1000; ++i) {
    circuit.failed(kStart);
    circuit.succeeded();
    circuit.succeeded();
  }
  EXPECT_EQ(circuit.state(kStart), CircuitState::kClosed);
}

TEST(Circuit, LetsOneProbeThroughAndClosesWhenItSucceeds) {
  Circuit circuit(health());
  open(circuit);
  const TimePoint later = kStart + seconds(5);
  EXPECT_FALSE(circuit.allow(later - seconds(1)));
  EXPECT_EQ(circuit.state(later), CircuitState::kHalfOpen);
  EXPECT_TRUE(circuit.allow(later));
  EXPECT_FALSE(circuit.allow(later));
  circuit.succeeded();
  EXPECT_EQ(circuit.state(later), CircuitState::kClosed);
  EXPECT_TRUE(circuit.allow(later));
}

TEST(Circuit, CoolsLongerWithEachProbeThatFails) {
  Circuit circuit(health());
  open(circuit);
  TimePoint now = kStart;
  for (const int wait : {5, 10, 15, 15}) {
    EXPECT_EQ(circuit.when(), now + seconds(wait));
    now += seconds(wait);
    ASSERT_TRUE(circuit.allow(now));
    circuit.failed(now);
  }
  now = circuit.when();
  ASSERT_TRUE(circuit.allow(now));
  circuit.succeeded();
  open(circuit, now);
  EXPECT_EQ(circuit.when(), now + seconds(5));
}

TEST(Circuit, AProbeThatIsCancelledMakesRoomForAnother) {
  Circuit circuit(health());
  open(circuit);
  const TimePoint later = kStart + seconds(5);
  ASSERT_TRUE(circuit.allow(later));
  circuit.abandoned();
  EXPECT_TRUE(circuit.allow(later));
}

TEST(Circuit, AProbeThatNeverReportsDoesNotCloseTheTargetForEver) {
  Circuit circuit(health());
  open(circuit);
  ASSERT_TRUE(circuit.allow(kStart + seconds(5)));
  EXPECT_FALSE(circuit.allow(kStart + minutes(5)));
  EXPECT_TRUE(circuit.allow(kStart + minutes(11)));
}

TEST(Circuit, CoolsForJustAsLongAsTheProviderSays) {
  Circuit circuit(health());
  circuit.cool(kStart + seconds(30));
  circuit.cool(kStart + seconds(10));
  EXPECT_TRUE(circuit.is_cooling(kStart + seconds(29)));
  EXPECT_FALSE(circuit.allow(kStart + seconds(29)));
  EXPECT_EQ(circuit.when(), kStart + seconds(30));
  circuit.succeeded();  // of a call that was out already
  EXPECT_FALSE(circuit.allow(kStart + seconds(29)));
  EXPECT_TRUE(circuit.allow(kStart + seconds(30)));
}

TEST(Circuit, OneOfManyThreadsGetsTheProbe) {
  for (int round = 0; round < 50; ++round) {
    Circuit circuit(health());
    open(circuit);
    std::atomic<int> allowed{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] { allowed += circuit.allow(kStart + seconds(6)) ? 1 : 0; });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(allowed.load(), 1);
  }
}

}  // namespace
}  // namespace waybill::upstream
