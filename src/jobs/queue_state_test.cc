#include "jobs/queue_state.h"

#include <gtest/gtest.h>

namespace waybill::jobs {
namespace {

using namespace std::chrono_literals;

const TimePoint kStart{1h};

std::shared_ptr<const config::JobQueue> queue_of(std::size_t concurrency, std::size_t per_minute = 0) {
  auto queue = std::make_shared<config::JobQueue>();
  queue->name = "q";
  queue->concurrency = concurrency;
  queue->requests_per_minute = per_minute;
  queue->backoff = {.first = 1s, .most = 8s};
  return queue;
}

// Claims what it may, and gets `there` of it.
std::size_t claim(QueueState& state, std::size_t there, TimePoint now = kStart) {
  const std::size_t wanted = state.wanted(now);
  if (wanted == 0) return 0;
  state.claim(wanted, now);
  EXPECT_EQ(state.wanted(now), 0U);  // one at a time
  const std::size_t got = std::min(wanted, there);
  state.claimed(got, now);
  return got;
}

TEST(QueueState, ClaimsUpToItsConcurrency) {
  QueueState state(queue_of(40));
  EXPECT_EQ(claim(state, 100), QueueState::kMostOfAClaim);
  EXPECT_EQ(claim(state, 100), 40 - QueueState::kMostOfAClaim);
  EXPECT_EQ(state.running(), 40U);
  EXPECT_EQ(state.wanted(kStart), 0U);
  state.ended(false, kStart, 0.5);
  EXPECT_EQ(state.wanted(kStart), 1U);
}

TEST(QueueState, SleepsWhenNothingIsThereUntilItIsWokenOrASecondHasPassed) {
  QueueState state(queue_of(4));
  EXPECT_EQ(claim(state, 1), 1U);
  EXPECT_EQ(state.wanted(kStart), 0U);
  state.wake();
  EXPECT_EQ(claim(state, 0), 0U);
  EXPECT_EQ(state.wanted(kStart + 999ms), 0U);
  EXPECT_EQ(state.wanted(kStart + QueueState::kLook), 3U);
}

TEST(QueueState, NewsThatComesWhileItClaimsIsNotLost) {
  QueueState state(queue_of(4));
  state.claim(4, kStart);
  state.wake();
  state.claimed(0, kStart);
  EXPECT_EQ(state.wanted(kStart), 4U);
}

TEST(QueueState, ARefusedClaimIsTriedAgain) {
  QueueState state(queue_of(4, 4));
  state.claim(4, kStart);
  state.claim_failed(kStart);
  EXPECT_EQ(state.wanted(kStart), 4U);  // of the rate nothing was used
}

TEST(QueueState, KeepsToItsRate) {
  QueueState state(queue_of(1000, 60));
  std::size_t claimed = 0;
  while (const std::size_t got = claim(state, 1000)) claimed += got;
  EXPECT_EQ(claimed, 60U);
  state.wake();
  EXPECT_EQ(state.wanted(kStart + 900ms), 0U);
  EXPECT_EQ(state.wanted(kStart + 2500ms), 2U);
  // What was not there was not used.
  state.claim(2, kStart + 2500ms);
  state.claimed(0, kStart + 2500ms);
  state.wake();
  EXPECT_EQ(state.wanted(kStart + 2500ms), 2U);
}

TEST(QueueState, LeavesProvidersAloneThatTakeNothing) {
  QueueState state(queue_of(2));
  claim(state, 2);
  state.ended(true, kStart, 0.5);
  EXPECT_EQ(claim(state, 1), 1U);  // one alone says little: it may have been its model
  state.ended(true, kStart, 0.5);
  state.wake();
  EXPECT_EQ(state.wanted(kStart + 499ms), 0U);
  EXPECT_EQ(state.wanted(kStart + 500ms), 1U);
  EXPECT_EQ(claim(state, 1, kStart + 500ms), 1U);
  state.ended(false, kStart + 500ms, 0.5);  // a call was made
  EXPECT_EQ(state.releases(), 0U);
}

TEST(QueueState, TakesAnotherConfiguration) {
  QueueState state(queue_of(4, 60));
  claim(state, 4);
  state.configure(queue_of(2, 60), kStart);
  state.ended(false, kStart, 0.5);
  state.ended(false, kStart, 0.5);
  EXPECT_EQ(state.wanted(kStart), 0U);  // two still run
  state.ended(false, kStart, 0.5);
  EXPECT_EQ(state.wanted(kStart), 1U);
  state.retire();
  EXPECT_EQ(state.wanted(kStart), 0U);
  state.configure(queue_of(8), kStart);
  EXPECT_EQ(state.wanted(kStart), 7U);
}

}  // namespace
}  // namespace waybill::jobs
