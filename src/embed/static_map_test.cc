#include "embed/static_map.h"

#include <cmath>
#include <cstddef>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace waybill::embed {
namespace {

constexpr std::size_t kIn = 20, kOut = 70;  // neither a multiple of a block

std::vector<float> normalised(std::vector<float> v) {
  float square = 0;
  for (const float x : v) square += x * x;
  for (float& x : v) x /= std::sqrt(square);
  return v;
}

// A linear world: full = M static + c, which the learner does not know.
class World {
 public:
  explicit World(unsigned seed) : random_(seed) {
    for (auto& row : matrix_) row = gaussian(kIn + 1);
  }
  std::vector<float> static_vector() { return normalised(gaussian(kIn)); }
  [[nodiscard]] std::vector<float> full_vector(const std::vector<float>& x) const {
    std::vector<float> y;
    for (const auto& row : matrix_) {
      float sum = row[kIn];
      for (std::size_t i = 0; i < kIn; ++i) sum += row[i] * x[i];
      y.push_back(sum);
    }
    return normalised(y);
  }
  void teach(StaticMapLearner& learner, int pairs) {
    for (int i = 0; i < pairs; ++i) {
      const auto x = static_vector();
      learner.add(x, full_vector(x));
    }
  }
  // Mean cosine between what the map says and what is true.
  double agreement(const StaticMap& map) {
    double sum = 0;
    std::vector<float> said(kOut);
    for (int i = 0; i < 200; ++i) {
      const auto x = static_vector();
      const auto y = full_vector(x);
      map.apply(x, said);
      for (std::size_t j = 0; j < kOut; ++j) sum += static_cast<double>(said[j]) * y[j];
    }
    return sum / 200;
  }

 private:
  std::vector<float> gaussian(std::size_t n) {
    std::normal_distribution<float> normal;
    std::vector<float> out(n);
    for (float& x : out) x = normal(random_);
    return out;
  }
  std::mt19937 random_;
  std::vector<std::vector<float>> matrix_ = std::vector<std::vector<float>>(kOut);
};

TEST(StaticMap, LearnsALinearWorld) {
  World world(1);
  StaticMapLearner learner(kIn, kOut);
  world.teach(learner, 3001);
  EXPECT_EQ(learner.pairs(), 3001U);
  const auto map = learner.snapshot();
  ASSERT_TRUE(map);
  EXPECT_EQ(map->pairs(), 3001U);
  EXPECT_GT(world.agreement(*map), 0.97);  // the lengths have been normalised away
  World other(2);
  EXPECT_LT(other.agreement(*map), 0.5);
}

TEST(StaticMap, IsSilentBeforeItHasSeenEnough) {
  World world(1);
  StaticMapLearner learner(kIn, kOut, {.least_pairs = 100});
  world.teach(learner, 99);
  EXPECT_FALSE(learner.snapshot());
  world.teach(learner, 1);
  EXPECT_TRUE(learner.snapshot());
}

TEST(StaticMap, ForgetsOldTraffic) {
  World before(1), now(2);
  StaticMapLearner learner(kIn, kOut, {.memory = 1000});
  before.teach(learner, 5000);
  now.teach(learner, 5000);
  const auto map = learner.snapshot();
  ASSERT_TRUE(map);
  EXPECT_GT(now.agreement(*map), 0.95);
}

TEST(StaticMap, LearnsFromManyThreadsWhileMapsAreTaken) {
  StaticMapLearner learner(kIn, kOut, {.least_pairs = 1});
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      World world(1);  // all in the same world
      world.teach(learner, 1000);
    });
  }
  for (int i = 0; i < 20; ++i) (void)learner.snapshot();
  for (std::thread& thread : threads) thread.join();
  const auto map = learner.snapshot();
  ASSERT_TRUE(map);
  EXPECT_EQ(map->pairs(), 4000U);
  EXPECT_GT(World(1).agreement(*map), 0.97);
}

}  // namespace
}  // namespace waybill::embed
