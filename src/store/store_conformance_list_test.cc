// Lists of jobs.
#include <algorithm>
#include <vector>

#include "store/store_conformance_test.h"

namespace waybill::store {
namespace {

std::vector<Uuid> ids_of(const std::vector<Job>& jobs) {
  std::vector<Uuid> ids;
  for (const Job& job : jobs) ids.push_back(job.id);
  return ids;
}

TEST_P(StoreConformance, ListsTheLatestFirstByStateQueueCallerAndMetadata) {
  std::vector<Uuid> ids;
  for (int i = 0; i < 12; ++i) {
    Submit submit = a_job(i % 2 == 0 ? "q" : "other", i % 3 == 0 ? "alice" : "bob");
    submit.metadata = i < 6 ? R"({"user": "u\"1", "n": "1"})" : R"({"user": "u2"})";
    ids.push_back(this->submit(submit));
  }
  apply(Cancel{ids[0]});
  apply(Cancel{ids[7]});
  std::ranges::reverse(ids);  // 11 ... 0
  JobFilter filter;
  EXPECT_EQ(ids_of(store().list(filter).value()), ids);
  filter.limit = 5;
  EXPECT_EQ(ids_of(store().list(filter).value()), std::vector<Uuid>(ids.begin(), ids.begin() + 5));
  filter.after = ids[4];
  EXPECT_EQ(ids_of(store().list(filter).value()), std::vector<Uuid>(ids.begin() + 5, ids.begin() + 10));
  filter = {};
  filter.state = State::kCancelled;
  EXPECT_EQ(ids_of(store().list(filter).value()), (std::vector<Uuid>{ids[4], ids[11]}));
  filter.queue = "q";
  EXPECT_EQ(ids_of(store().list(filter).value()), (std::vector<Uuid>{ids[11]}));
  filter.state = State::kQueued;
  EXPECT_EQ(store().list(filter).value().size(), 5U);
  filter.caller = "alice";
  EXPECT_EQ(ids_of(store().list(filter).value()), (std::vector<Uuid>{ids[5]}));
  filter.caller = "nobody";
  EXPECT_TRUE(store().list(filter).value().empty());
  filter = {};
  filter.excluded_queue = "nowhere";
  EXPECT_EQ(store().list(filter).value().size(), 12U);
  filter.excluded_queue = "other";
  EXPECT_EQ(store().list(filter).value().size(), 6U);
  filter.limit = 3;
  EXPECT_EQ(ids_of(store().list(filter).value()), (std::vector<Uuid>{ids[1], ids[3], ids[5]}));
  filter.queue = "other";  // that is what is wanted
  EXPECT_EQ(ids_of(store().list(filter).value()), (std::vector<Uuid>{ids[0], ids[2], ids[4]}));
  filter = {};
  filter.metadata = {{"user", "u\"1"}};
  EXPECT_EQ(store().list(filter).value().size(), 6U);
  filter.metadata.emplace_back("n", "1");
  EXPECT_EQ(store().list(filter).value().size(), 6U);
  filter.metadata.emplace_back("n", "2");
  EXPECT_TRUE(store().list(filter).value().empty());
  filter.metadata = {{"user", "u2"}};
  filter.caller = "alice";
  EXPECT_EQ(ids_of(store().list(filter).value()), (std::vector<Uuid>{ids[2], ids[5]}));
}

}  // namespace
}  // namespace waybill::store
