#include "store/store_property_test.h"

#include <algorithm>
#include <cstdlib>

namespace waybill::store {
namespace {

// WAYBILL_STORE_SEED=n repeats a run.
std::uint64_t seed_of(std::uint64_t otherwise) {
  const char* given = std::getenv("WAYBILL_STORE_SEED");
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

TEST_P(StoreProperties, NothingIsLostOrDoubledWhateverIsDone) {
  run(seed_of(GetParam().name.size() + 1), 1200);
}
TEST_P(StoreProperties, NorWithAnotherSeed) { run(seed_of(std::random_device{}()), 800); }

// Each claim of a queue with several callers gives no caller two more than another that still has some.
TEST_P(StoreProperties, TurnsAreFairWhateverTheBacklog) {
  const std::uint64_t seed = seed_of(std::random_device{}());
  SCOPED_TRACE("WAYBILL_STORE_SEED=" + std::to_string(seed));
  random_.seed(seed);
  std::map<std::string, std::size_t> left;
  std::vector<Command> commands;
  for (const char* caller : {"a", "b", "c", "d"}) {
    left[caller] = 1 + random(40);
    for (std::size_t i = 0; i < left[caller]; ++i) commands.emplace_back(a_job("q", caller));
  }
  std::ranges::shuffle(commands, random_);
  apply_all(std::move(commands));
  std::map<std::string, std::size_t> got;
  std::size_t total = 0;
  for (const auto& [caller, jobs] : left) total += jobs;
  for (std::size_t claimed = 0; claimed < total;) {
    for (const Claim::Leased& one : claim(1 + random(9))) {
      ++got[one.job.caller];
      --left[one.job.caller];
      ++claimed;
    }
    for (const auto& [caller, jobs] : left) {
      if (jobs == 0) continue;
      for (const auto& [other, others] : got)
        EXPECT_LE(others, got[caller] + 1) << caller << " waits for " << other;
    }
    ASSERT_FALSE(HasFailure());
  }
}

}  // namespace
}  // namespace waybill::store
