#include "embed/distinct_forward.h"

#include <vector>

#include <gtest/gtest.h>

#include "embed/small_model_test.h"

namespace waybill::embed {
namespace {

struct Texts {
  std::vector<TokenId> ids;
  std::vector<std::uint32_t> offsets = {0};

  explicit Texts(const std::vector<std::vector<TokenId>>& texts) {
    for (const std::vector<TokenId>& text : texts) {
      ids.insert(ids.end(), text.begin(), text.end());
      offsets.push_back(static_cast<std::uint32_t>(ids.size()));
    }
  }
  [[nodiscard]] PackedBatch packed() const { return {.ids = ids, .offsets = offsets}; }
};

std::vector<float> forward(const Model& model, const PackedBatch& batch) {
  std::vector<float> out(batch.sequences() * model.dim());
  Workspace workspace;
  model.forward(batch, out, workspace);
  return out;
}

TEST(DistinctForward, ComputesEqualSequencesOnceAndAnswersAll) {
  const testing::SmallModel small;
  const Texts texts({{2, 5, 3}, {2, 6, 3}, {2, 5, 3}, {2, 5, 6, 3}, {2, 6, 3}, {2, 5, 3}});
  std::vector<float> out(6 * small.model().dim());
  Workspace workspace;
  DistinctForward distinct;
  EXPECT_EQ(distinct.run(small.model(), texts.packed(), out, workspace), 3 + 3 + 4);
  EXPECT_EQ(out, forward(small.model(), texts.packed()));
}

TEST(DistinctForward, ComputesAllOfABatchWithoutEqualSequences) {
  const testing::SmallModel small;
  const Texts texts({{2, 5, 3}, {2, 6, 3}, {2, 5, 6, 3}});
  std::vector<float> out(3 * small.model().dim());
  Workspace workspace;
  DistinctForward distinct;
  EXPECT_EQ(distinct.run(small.model(), texts.packed(), out, workspace), 10);
  EXPECT_EQ(out, forward(small.model(), texts.packed()));
}

}  // namespace
}  // namespace waybill::embed
