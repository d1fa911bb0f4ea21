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
    ASSERT_NE(circuit.allow(now), CircuitPass::kNo);
    circuit.failed(now);
  }
  ASSERT_EQ(circuit.state(now), CircuitState::kOpen);
}

TEST(Circuit, OpensAfterFailuresInARow) {
  Circuit circuit(health());
  for (int i = 0; i < 2; ++i) {
    EXPECT_NE(circuit.allow(kStart), CircuitPass::kNo);
    circuit.failed(kStart);
  }
  circuit.succeeded();
  for (int i = 0; i < 2; ++i) circuit.failed(kStart);
  EXPECT_EQ(circuit.state(kStart), CircuitState::kClosed);
  circuit.failed(kStart);
  EXPECT_EQ(circuit.state(kStart), CircuitState::kOpen);
  EXPECT_EQ(circuit.allow(kStart), CircuitPass::kNo);
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
  EXPECT_EQ(circuit.allow(later - seconds(1)), CircuitPass::kNo);
  EXPECT_EQ(circuit.state(later), CircuitState::kHalfOpen);
  EXPECT_NE(circuit.allow(later), CircuitPass::kNo);
  EXPECT_EQ(circuit.allow(later), CircuitPass::kNo);
  circuit.succeeded();
  EXPECT_EQ(circuit.state(later), CircuitState::kClosed);
  EXPECT_NE(circuit.allow(later), CircuitPass::kNo);
}

TEST(Circuit, CoolsLongerWithEachProbeThatFails) {
  Circuit circuit(health());
  open(circuit);
  TimePoint now = kStart;
  for (const int wait : {5, 10, 15, 15}) {
    EXPECT_EQ(circuit.when(), now + seconds(wait));
    now += seconds(wait);
    ASSERT_EQ(circuit.allow(now), CircuitPass::kProbe);
    circuit.failed(now, CircuitPass::kProbe);
  }
  now = circuit.when();
  ASSERT_EQ(circuit.allow(now), CircuitPass::kProbe);
  circuit.succeeded();
  open(circuit, now);
  EXPECT_EQ(circuit.when(), now + seconds(5));
}

TEST(Circuit, AProbeThatIsCancelledMakesRoomForAnother) {
  Circuit circuit(health());
  open(circuit);
  const TimePoint later = kStart + seconds(5);
  ASSERT_EQ(circuit.allow(later), CircuitPass::kProbe);
  circuit.abandoned(CircuitPass::kProbe);
  EXPECT_EQ(circuit.allow(later), CircuitPass::kProbe);
}

TEST(Circuit, CallsThatWentOutBeforeDoNotEndTheProbe) {
  Circuit circuit(health());
  open(circuit);
  const TimePoint later = kStart + seconds(5);
  ASSERT_EQ(circuit.allow(later), CircuitPass::kProbe);
  circuit.failed(later, CircuitPass::kCall);
  circuit.abandoned(CircuitPass::kCall);
  EXPECT_EQ(circuit.allow(later), CircuitPass::kNo);
  circuit.failed(later, CircuitPass::kProbe);
  EXPECT_EQ(circuit.when(), later + seconds(10));
}

TEST(Circuit, AProbeThatNeverReportsDoesNotCloseTheTargetForEver) {
  Circuit circuit(health());
  open(circuit);
  ASSERT_NE(circuit.allow(kStart + seconds(5)), CircuitPass::kNo);
  EXPECT_EQ(circuit.allow(kStart + minutes(5)), CircuitPass::kNo);
  EXPECT_NE(circuit.allow(kStart + minutes(11)), CircuitPass::kNo);
}

TEST(Circuit, CoolsForJustAsLongAsTheProviderSays) {
  Circuit circuit(health());
  circuit.cool(kStart + seconds(30));
  circuit.cool(kStart + seconds(10));
  EXPECT_TRUE(circuit.is_cooling(kStart + seconds(29)));
  EXPECT_EQ(circuit.allow(kStart + seconds(29)), CircuitPass::kNo);
  EXPECT_EQ(circuit.when(), kStart + seconds(30));
  circuit.succeeded();  // of a call that was out already
  EXPECT_EQ(circuit.allow(kStart + seconds(29)), CircuitPass::kNo);
  EXPECT_NE(circuit.allow(kStart + seconds(30)), CircuitPass::kNo);
}

TEST(Circuit, OneOfManyThreadsGetsTheProbe) {
  for (int round = 0; round < 50; ++round) {
    Circuit circuit(health());
    open(circuit);
    std::atomic<int> allowed{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back(
          [&] { allowed += circuit.allow(kStart + seconds(6)) == CircuitPass::kProbe ? 1 : 0; });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(allowed.load(), 1);
  }
}

}  // namespace
}  // namespace waybill::upstream
