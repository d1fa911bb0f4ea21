#include "upstream/answer_memory.h"

#include <gtest/gtest.h>

namespace waybill::upstream {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kNow{1h};

Hash128 key(std::uint64_t number) { return {number, ~number}; }

std::shared_ptr<const KeptAnswer> answer(std::size_t bytes) {
  auto made = std::make_shared<KeptAnswer>();
  made->content.assign(bytes, 'x');
  return made;
}

TEST(AnswerMemory, ForgetsWhenItsTimeHasPassed) {
  AnswerMemory memory;
  memory.limit(100'000);
  memory.keep(key(1), answer(10), kNow + 1min);
  EXPECT_NE(memory.find(key(1), kNow + 59s), nullptr);
  EXPECT_EQ(memory.find(key(2), kNow), nullptr);
  EXPECT_EQ(memory.find(key(1), kNow + 1min), nullptr);
  EXPECT_EQ(memory.bytes(), 0U);
}

TEST(AnswerMemory, DropsWhatWasUsedLeastLately) {
  AnswerMemory memory;
  memory.limit(50'000);
  for (std::uint64_t i = 0; i < 4; ++i) memory.keep(key(i), answer(10'000), kNow + 1h);
  EXPECT_NE(memory.find(key(0), kNow), nullptr);
  memory.keep(key(4), answer(10'000), kNow + 1h);
  EXPECT_NE(memory.find(key(0), kNow), nullptr);
  EXPECT_EQ(memory.find(key(1), kNow), nullptr);
  EXPECT_NE(memory.find(key(4), kNow), nullptr);
  EXPECT_LE(memory.bytes(), 50'000U);
}

TEST(AnswerMemory, ReplacesAnAnswer) {
  AnswerMemory memory;
  memory.limit(100'000);
  memory.keep(key(1), answer(10), kNow + 1h);
  const std::size_t before = memory.bytes();
  memory.keep(key(1), answer(20), kNow + 1h);
  EXPECT_EQ(memory.bytes(), before + 10);
  EXPECT_EQ(memory.find(key(1), kNow)->content.size(), 20U);
}

TEST(AnswerMemory, TakesNoAnswerThatWouldPushOutTheOthers) {
  AnswerMemory memory;
  memory.limit(100'000);
  memory.keep(key(1), answer(10), kNow + 1h);
  memory.keep(key(2), answer(memory.largest()), kNow + 1h);
  EXPECT_EQ(memory.find(key(2), kNow), nullptr);
  EXPECT_NE(memory.find(key(1), kNow), nullptr);
}

TEST(AnswerMemory, GivesWayToWhatIsBeingReceived) {
  AnswerMemory memory;
  memory.limit(20'000);
  memory.keep(key(1), answer(4'000), kNow + 1h);
  EXPECT_TRUE(memory.reserve(18'000));
  EXPECT_EQ(memory.find(key(1), kNow), nullptr);
  EXPECT_FALSE(memory.reserve(3'000));
  memory.keep(key(2), answer(4'000), kNow + 1h);
  EXPECT_EQ(memory.find(key(2), kNow), nullptr);
  memory.release(18'000);
  EXPECT_EQ(memory.bytes(), 0U);
}

TEST(AnswerMemory, KeepsNothingWithoutMemory) {
  AnswerMemory memory;
  memory.keep(key(1), answer(0), kNow + 1h);
  EXPECT_EQ(memory.find(key(1), kNow), nullptr);
}

TEST(AnswerMemory, ShrinksToALowerLimit) {
  AnswerMemory memory;
  memory.limit(100'000);
  memory.keep(key(1), answer(10'000), kNow + 1h);
  memory.limit(5'000);
  EXPECT_EQ(memory.find(key(1), kNow), nullptr);
}

}  // namespace
}  // namespace waybill::upstream
