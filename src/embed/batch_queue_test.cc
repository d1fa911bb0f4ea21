#include "embed/batch_queue.h"

#include <memory>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/executor.h"
#include "embed/batch.h"

namespace waybill::embed {
namespace {

using testing::ElementsAre;

class BatchQueueTest : public testing::Test {
 protected:
  void push(std::vector<TokenId> ids) {
    Batcher::Item item{
        .ids = ids, .executor = &executor_, .done = [this](auto&&, const BatchTiming&) { ++answered_; }};
    queue_.reserve(1, ids.size());
    queue_.push(item, TimePoint{});
  }
  void push_lengths(std::initializer_list<std::size_t> lengths) {
    for (const std::size_t length : lengths) push(std::vector<TokenId>(length, 1));
  }
  // The lengths of the sequences of the next batch.
  std::vector<std::size_t> take(std::size_t share, std::size_t budget) {
    Batch* batch = pool_->acquire();
    queue_.take(*batch, share, budget, TimePoint{});
    std::vector<std::size_t> lengths;
    const PackedBatch packed = batch->packed();
    for (std::size_t i = 0; i < packed.sequences(); ++i)
      lengths.push_back(packed.offsets[i + 1] - packed.offsets[i]);
    last_ids_.assign(packed.ids.begin(), packed.ids.end());
    batch->post_computed(TimePoint{}, TimePoint{});
    batch->release();
    return lengths;
  }

  InlineExecutor executor_;
  std::shared_ptr<BatchPool> pool_ = std::make_shared<BatchPool>(128, 2);
  BatchQueue queue_{5000};
  std::vector<TokenId> last_ids_;
  int answered_ = 0;
};

TEST_F(BatchQueueTest, TwoThreadsHalveAShortQueue) {
  push_lengths({16, 16, 16, 16});
  EXPECT_THAT(take(32, 128), ElementsAre(16, 16));
  EXPECT_THAT(take(32, 128), ElementsAre(16, 16));
}

TEST_F(BatchQueueTest, AShareIsRoundedToWholeItems) {
  push_lengths({16, 100});
  EXPECT_THAT(take(58, 128), ElementsAre(16)) << "the other thread takes the long one";
  EXPECT_THAT(take(100, 128), ElementsAre(100));
  push_lengths({10, 10, 10, 10, 10});
  EXPECT_THAT(take(25, 128), ElementsAre(10, 10, 10));
}

TEST_F(BatchQueueTest, IdsSurviveWrappingAndGrowingOfTheRings) {
  std::vector<TokenId> sent, received;
  TokenId next = 0;
  for (int round = 0; round < 3000; ++round) {
    for (int i = 0; i < 1 + round % 7; ++i) {
      std::vector<TokenId> ids(static_cast<std::size_t>(1 + (round * 13 + i * 7) % 40));
      std::iota(ids.begin(), ids.end(), next);
      next += static_cast<TokenId>(ids.size());
      if (!queue_.fits(ids.size())) break;
      sent.insert(sent.end(), ids.begin(), ids.end());
      push(std::move(ids));
    }
    (void)take(128, 128);
    received.insert(received.end(), last_ids_.begin(), last_ids_.end());
  }
  while (!queue_.empty()) {
    (void)take(128, 128);
    received.insert(received.end(), last_ids_.begin(), last_ids_.end());
  }
  EXPECT_EQ(sent, received);
  EXPECT_EQ(queue_.tokens(), 0U);
}

TEST_F(BatchQueueTest, HoldsExactlyItsBound) {
  push(std::vector<TokenId>(4990, 1));
  EXPECT_TRUE(queue_.fits(10));
  EXPECT_FALSE(queue_.fits(11));
  push(std::vector<TokenId>(10, 1));
  EXPECT_FALSE(queue_.fits(1));
  EXPECT_THAT(take(128, 128), ElementsAre(4990));
  EXPECT_TRUE(queue_.fits(4990));
}

}  // namespace
}  // namespace waybill::embed
