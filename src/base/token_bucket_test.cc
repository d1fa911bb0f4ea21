#include "base/token_bucket.h"

#include <gtest/gtest.h>

namespace waybill {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const TimePoint kStart{std::chrono::hours(1)};

TEST(TokenBucket, WithoutALimitNothingWaits) {
  TokenBucket bucket;
  bucket.take(1e12, kStart);
  EXPECT_EQ(bucket.wait(1e12, kStart), Duration::zero());
  EXPECT_FALSE(TokenBucket::of_minute(0).has_limit());
}

TEST(TokenBucket, IsFullAtFirstAndRefilledEvenly) {
  TokenBucket bucket = TokenBucket::of_minute(60);
  EXPECT_EQ(bucket.wait(60, kStart), Duration::zero());
  bucket.take(60, kStart);
  EXPECT_EQ(bucket.wait(1, kStart), seconds(1));
  EXPECT_EQ(bucket.wait(30, kStart), seconds(30));
  EXPECT_EQ(bucket.wait(1, kStart + milliseconds(250)), milliseconds(750));
  EXPECT_EQ(bucket.wait(1, kStart + seconds(1)), Duration::zero());
  EXPECT_EQ(bucket.reset(kStart + seconds(20)), seconds(40));
  EXPECT_DOUBLE_EQ(bucket.level(kStart + seconds(1000)), 60);
}

TEST(TokenBucket, WhatOthersTakeFirstMayBeMoreThanAllOfIt) {
  TokenBucket bucket(100, 10);
  EXPECT_EQ(bucket.wait(50, kStart, 50), Duration::zero());
  EXPECT_EQ(bucket.wait(50, kStart, 250), seconds(20));
  EXPECT_EQ(bucket.wait(500, kStart, 250), seconds(25)) << "it is taken from a full one";
}

TEST(TokenBucket, WaitIsExact) {
  TokenBucket bucket(7, 0.3);
  bucket.take(7, kStart);
  const Duration wait = bucket.wait(2, kStart);
  EXPECT_EQ(bucket.wait(2, kStart + wait), Duration::zero());
  EXPECT_GT(bucket.wait(2, kStart + wait - milliseconds(1)), Duration::zero());
}

TEST(TokenBucket, MoreThanAllOfItIsTakenFromAFullOne) {
  TokenBucket bucket(100, 10);
  EXPECT_EQ(bucket.wait(300, kStart), Duration::zero());
  bucket.take(300, kStart);
  EXPECT_DOUBLE_EQ(bucket.level(kStart), -200);
  EXPECT_EQ(bucket.wait(10, kStart), seconds(21));
  EXPECT_EQ(bucket.wait(300, kStart), seconds(30));
}

TEST(TokenBucket, WhatIsGivenBackDoesNotOverflow) {
  TokenBucket bucket(10, 1);
  bucket.take(4, kStart);
  bucket.give_back(3);
  EXPECT_DOUBLE_EQ(bucket.level(kStart), 9);
  bucket.give_back(3);
  EXPECT_DOUBLE_EQ(bucket.level(kStart), 10);
}

TEST(TokenBucket, TimeThatGoesBackChangesNothing) {
  TokenBucket bucket(10, 1);
  bucket.take(10, kStart + seconds(5));
  bucket.take(1, kStart);
  EXPECT_DOUBLE_EQ(bucket.level(kStart + seconds(6)), 0);
}

TEST(TokenBucket, AnotherLimitKeepsWhatWasUsed) {
  TokenBucket bucket(10, 1);
  bucket.take(4, kStart);
  bucket.resize(100, 10, kStart);
  EXPECT_DOUBLE_EQ(bucket.level(kStart), 96);
  bucket.resize(3, 1, kStart);
  EXPECT_DOUBLE_EQ(bucket.level(kStart), -1);
}

}  // namespace
}  // namespace waybill
