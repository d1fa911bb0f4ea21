#include "route/agreement_gate.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace waybill::route {
namespace {

// Margins uniform in [0, 9], agreement as the model has it: logit P = -1 + 1.3 margin.
std::vector<AgreementSample> draw(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform;
  std::vector<AgreementSample> samples(count);
  for (AgreementSample& sample : samples) {
    const double margin = 9 * uniform(random);
    sample.margin = static_cast<float>(margin);
    sample.agrees = uniform(random) < 1 / (1 + std::exp(1 - 1.3 * margin));
  }
  return samples;
}

struct Observed {
  double share = 0, agreement = 0;
};

Observed observe(const AgreementGate& gate, std::span<const AgreementSample> samples) {
  double open = 0, same = 0;
  for (const AgreementSample& sample : samples) {
    if (!gate.opens(sample.margin)) continue;
    ++open;
    same += sample.agrees ? 1 : 0;
  }
  return {.share = open / static_cast<double>(samples.size()), .agreement = open == 0 ? 1 : same / open};
}

TEST(AgreementGate, IsShutWithoutSamplesAndByDefault) {
  EXPECT_FALSE(AgreementGate().opens(1e30F));
  EXPECT_FALSE(AgreementGate::fit({}, 0.995).opens(1e30F));
}

TEST(AgreementGate, KeepsItsPromiseOnSamplesItHasNotSeen) {
  const std::vector<AgreementSample> unseen = draw(200'000, 99);
  for (unsigned seed = 1; seed <= 10; ++seed) {
    for (const double target : {0.98, 0.995}) {
      const AgreementGate gate = AgreementGate::fit(draw(1'500, seed), target);
      const Observed observed = observe(gate, unseen);
      EXPECT_GE(observed.agreement, target - 0.002) << "seed " << seed << ", target " << target;
      EXPECT_GT(observed.share, 0.3) << "seed " << seed << ", target " << target;
      EXPECT_NEAR(gate.share(), observed.share, 0.05);
    }
  }
}

TEST(AgreementGate, OpensLessForAHigherTarget) {
  const std::vector<AgreementSample> samples = draw(2'000, 5);
  EXPECT_LT(AgreementGate::fit(samples, 0.95).threshold(), AgreementGate::fit(samples, 0.99).threshold());
  EXPECT_LT(AgreementGate::fit(samples, 0.99).threshold(), AgreementGate::fit(samples, 0.999).threshold());
}

TEST(AgreementGate, StaysShutWhenTooFewSamplesCannotTell) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(AgreementGate::fit(draw(12, seed), 0.995).share(), 0) << "seed " << seed;
  }
}

TEST(AgreementGate, StaysShutWhenTheMarginSaysNothing) {
  std::vector<AgreementSample> samples = draw(1'000, 3);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i].agrees = i % 10 != 0;
  EXPECT_FALSE(AgreementGate::fit(samples, 0.995).opens(9));
}

TEST(AgreementGate, StaysShutWhenLargerMarginsAgreeLess) {
  std::vector<AgreementSample> samples = draw(1'000, 4);
  for (AgreementSample& sample : samples) sample.agrees = sample.margin < 2;
  EXPECT_FALSE(AgreementGate::fit(samples, 0.995).opens(9));
}

TEST(AgreementGate, SurvivesSamplesThatAreAllTheSame) {
  const std::vector<AgreementSample> same(100, {.margin = 0, .agrees = true});
  EXPECT_FALSE(std::isnan(AgreementGate::fit(same, 0.995).threshold()));
  const std::vector<AgreementSample> never(100, {.margin = 1, .agrees = false});
  EXPECT_FALSE(AgreementGate::fit(never, 0.995).opens(1));
}

}  // namespace
}  // namespace waybill::route
