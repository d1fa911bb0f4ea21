#include "store/sqlite/key_table.h"

#include <map>
#include <memory>
#include <random>

#include <gtest/gtest.h>

#include "store/sqlite/schema.h"
#include "store/store_conformance_test.h"

namespace waybill::store::sqlite {
namespace {

constexpr std::size_t kRecent = 8;

class KeyTableTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path path = folder_.path() / "jobs.db";
    auto opened = Connection::open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    ASSERT_TRUE(opened) << opened.error().message;
    connection_ = std::move(*opened);
    connection_->execute("PRAGMA synchronous = OFF");
    ASSERT_TRUE(migrate(*connection_, path, 0));
    reopen();
  }

  // As after a restart.
  void reopen() {
    keys_.reset();
    counters_ = std::make_unique<Counters>(*connection_);
    counters_->load();
    keys_ = std::make_unique<KeyTable>(*connection_, *counters_, kRecent);
    keys_->load();
  }
  template <class Work>
  void transaction(const Work& work, bool commits = true) {
    connection_->execute("BEGIN");
    work();
    counters_->flush();
    connection_->execute(commits ? "COMMIT" : "ROLLBACK");
    if (!commits) {
      counters_->load();
      keys_->load();
    }
    ASSERT_FALSE(connection_->failed()) << connection_->message();
  }
  [[nodiscard]] std::int64_t rows() { return connection_->number("SELECT count(*) FROM keys"); }

  TemporaryFolder folder_;
  std::unique_ptr<Connection> connection_;
  std::unique_ptr<Counters> counters_;
  std::unique_ptr<KeyTable> keys_;
};

IdempotencyKey key(std::uint64_t number, Time until) {
  const std::uint64_t home = (number % 97) * 0x9E37'79B9'7F4A'7C15U;
  return {.key = {home, number}, .payload = {number, 1}, .until = until};
}

TEST_F(KeyTableTest, KeysComeToTheirPlacesManyAtATime) {
  transaction([this] {
    for (std::uint64_t i = 1; i <= kRecent; ++i) keys_->insert(key(i, 100), 1, 0);
  });
  EXPECT_EQ(rows(), 0);
  transaction([this] {
    for (std::uint64_t i = kRecent + 1; i <= 2 * kRecent; ++i) keys_->insert(key(i, 100), 1, 0);
  });
  EXPECT_EQ(rows(), kRecent);
  for (std::uint64_t i = 1; i <= 2 * kRecent; ++i) EXPECT_TRUE(keys_->find(key(i, 100))) << i;
  transaction([this] { (void)keys_->settle(0, 1000); });
  EXPECT_EQ(rows(), 2 * kRecent);
  EXPECT_EQ(counters_->get(Counter::kKeys), 2 * kRecent);
}

TEST_F(KeyTableTest, FewKeysWaitUntilOneOfThemHasEnded) {
  transaction([this] { keys_->insert(key(1, 100), 1, 0); });
  transaction([this] { (void)keys_->settle(99, 1000); });
  EXPECT_EQ(connection_->number("SELECT count(*) FROM recent_keys_0"), 1);
  transaction([this] { (void)keys_->settle(100, 1000); });
  EXPECT_FALSE(keys_->find(key(1, 100)));
  EXPECT_EQ(rows(), 0);
  EXPECT_EQ(counters_->get(Counter::kKeys), 0);
}

// Inserts, replacements, settling, forgetting, rollbacks and restarts at random, beside a map.
TEST_F(KeyTableTest, IsAMap) {
  struct Known {
    std::int64_t job;
    Time until;
  };
  std::map<std::uint64_t, Known> model;
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const auto below = [&random](std::uint64_t n) { return random() % n; };
  Time now = 0;
  for (int step = 0; step < 3000; ++step) {
    const auto before = model;
    const bool commits = below(10) != 0;
    transaction(
        [&] {
          for (std::uint64_t left = below(6); left > 0; --left) {
            const std::uint64_t number = 1 + below(200);
            const Time until = now + 1 + static_cast<Time>(below(60));
            const std::int64_t job = step * 10 + static_cast<std::int64_t>(left);
            const auto found = keys_->find(key(number, until));
            const auto known = model.find(number);
            if (known == model.end()) {
              ASSERT_FALSE(found) << number;
              keys_->insert(key(number, until), job, now);
              model[number] = {job, until};
              continue;
            }
            if (!found) {  // it may be forgotten once its time has passed
              ASSERT_LE(known->second.until, now) << number;
              keys_->insert(key(number, until), job, now);
            } else {
              ASSERT_EQ(found->job, known->second.job) << number;
              ASSERT_EQ(found->until, known->second.until) << number;
              if (found->until > now && below(2) == 0) continue;
              keys_->replace(*found, key(number, until), job);
            }
            known->second = {job, until};
          }
          if (below(4) == 0) (void)keys_->settle(now, 1 + below(5));
          if (below(4) == 0) (void)keys_->forget(now, 1 + below(50), 1 + below(5));
        },
        commits);
    if (!commits) model = before;
    if (below(20) == 0) reopen();
    now += static_cast<Time>(below(3));
  }
  now += 1000;  // in the end nothing is left
  for (int i = 0; i < 1000; ++i) {
    transaction([&] {
      (void)keys_->settle(now, 10);
      (void)keys_->forget(now, 50, 10);
    });
  }
  EXPECT_EQ(counters_->get(Counter::kKeys), 0);
  EXPECT_EQ(rows(), 0);
  EXPECT_EQ(connection_->number(
                "SELECT (SELECT count(*) FROM recent_keys_0) + (SELECT count(*) FROM recent_keys_1)"),
            0);
}

}  // namespace
}  // namespace waybill::store::sqlite
