// What a power cut, a full disk and a disk that fails may do to a store, and what not.
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "store/sqlite/connection.h"
#include "store/sqlite/fault_vfs_test.h"
#include "store/sqlite/sqlite_store.h"
#include "store/store_conformance_test.h"

namespace waybill::store::sqlite {
namespace {

// A store on a faulty disk, what it has acknowledged, and what was under way when it failed.
class Durability : public testing::Test {
 protected:
  // As it is, there is a checkpoint after each few transactions.
  Result<std::unique_ptr<Store>> open(std::size_t max_log_bytes = 64U << 10) {
    SqliteOptions options;
    options.path = folder_.path() / "jobs.db";
    options.vfs = disk_.name();
    options.checkpoint_thread = false;
    options.max_log_bytes = max_log_bytes;
    options.recent_keys = 4;
    return open_sqlite_store(options);
  }

  // Each step one transaction; false when it failed. `step` counts the workload's transactions.
  bool take_step(Store& store, int step) {
    under_way_.clear();
    made_under_way_ = 0;
    std::vector<Command> commands;
    if (step % 4 == 3) {
      for (const auto& [id, state] : states_) {
        if (state.first == State::kRunning && commands.size() < 2) {
          commands.emplace_back(
              Finish{{id, state.second}, State::kCompleted, an_answer(std::string(700, 'r'))});
          under_way_[id] = State::kCompleted;
        }
      }
    } else if (step % 4 == 2) {
      Claim claim;
      claim.queue = "q";
      claim.max = 2;
      claim.until = kStart + kHour;
      claim.own = false;
      commands.emplace_back(claim);
    } else {
      made_under_way_ = 3;
      for (std::size_t i = 0; i < made_under_way_; ++i) {
        Submit submit = a_job("q", i % 2 == 0 ? "a" : "b");
        submit.body = std::string(900, 'b');
        const std::uint64_t key = static_cast<std::uint64_t>(step) * 10 + i;
        submit.key = a_key(key, key);
        commands.emplace_back(std::move(submit));
      }
    }
    claims_under_way_ = step % 4 == 2;
    Result<Committed> committed = store.commit(commands, kStart + step * kSecond);
    if (!committed) {
      EXPECT_EQ(committed.error().code, ErrorCode::kStoreUnavailable);
      EXPECT_FALSE(committed.error().message.empty());
      return false;
    }
    for (const Change& change : committed->changes) states_[change.id] = {change.state, change.fence};
    under_way_.clear();
    made_under_way_ = 0;
    claims_under_way_ = false;
    return true;
  }

  // All that was acknowledged is there; of what was under way all or nothing.
  void check(Store& store, bool may_have_happened) {
    JobFilter all;
    all.limit = 100'000;
    const Result<std::vector<Job>> jobs = store.list(all);
    ASSERT_TRUE(jobs) << jobs.error().message;
    std::map<Uuid, State> found;
    for (const Job& job : *jobs) found[job.id] = job.state;
    std::size_t changed = 0;
    for (const auto& [id, state] : states_) {
      ASSERT_TRUE(found.contains(id)) << "an acknowledged job is lost";
      if (found[id] == state.first) continue;
      ++changed;
      EXPECT_TRUE(may_have_happened);
      if (claims_under_way_) {
        EXPECT_EQ(found[id], State::kRunning);
      } else {
        ASSERT_TRUE(under_way_.contains(id));
        EXPECT_EQ(found[id], under_way_[id]);
      }
    }
    if (!claims_under_way_) {
      EXPECT_TRUE(changed == 0 || changed == under_way_.size());
    }
    const std::size_t made = found.size() - states_.size();
    EXPECT_TRUE(made == 0 || (may_have_happened && made == made_under_way_)) << made;
    std::map<State, std::uint64_t> counted, told;
    for (const auto& [id, state] : found) ++counted[state];
    for (const Depth& depth : store.depths().value()) told[depth.state] += depth.jobs;
    EXPECT_EQ(told, counted);
  }

  void check_integrity() {
    auto connection =
        Connection::open(folder_.path() / "jobs.db", SQLITE_OPEN_READWRITE, disk_.name().c_str());
    ASSERT_TRUE(connection);
    Statement check(**connection, "PRAGMA integrity_check");
    Rows rows = check.rows();
    ASSERT_TRUE(rows.next());
    EXPECT_EQ(rows.text(0), "ok");
  }

  std::uint64_t cut_power_everywhere(std::size_t max_log_bytes);

  static constexpr int kSteps = 16;

  TemporaryFolder folder_;
  FaultyDisk disk_{"faulty"};
  std::map<Uuid, std::pair<State, std::uint64_t>> states_;  // acknowledged, with the fence
  std::map<Uuid, State> under_way_;
  std::size_t made_under_way_ = 0;
  bool claims_under_way_ = false;
};

// Returns how often the power was cut.
std::uint64_t Durability::cut_power_everywhere(std::size_t max_log_bytes) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::uint64_t cuts = 0, opened_anew = 0;
  for (std::uint64_t at = 0;; ++at) {
    SCOPED_TRACE("cut at change " + std::to_string(at));
    disk_.restart(0);
    disk_.remove((folder_.path() / "jobs.db").string());
    disk_.remove((folder_.path() / "jobs.db-wal").string());
    states_.clear();
    const std::uint64_t begun = disk_.changes();
    disk_.cut_power_at(begun + at);
    {
      Result<std::unique_ptr<Store>> store = open(max_log_bytes);
      under_way_.clear();
      made_under_way_ = 0;
      for (int step = 0; store && step < kSteps; ++step) {
        if (!take_step(**store, step)) break;
      }
    }  // closing writes too
    if (!disk_.is_off()) break;
    ++cuts;
    disk_.restart(seed + at);
    {
      Result<std::unique_ptr<Store>> store = open(max_log_bytes);
      EXPECT_TRUE(store) << (store ? "" : store.error().message);
      if (!store) return cuts;
      check(**store, true);
      if (HasFatalFailure()) return cuts;
      if (!states_.empty()) ++opened_anew;
      // And it goes on.
      claims_under_way_ = false;
      EXPECT_TRUE(take_step(**store, 1000));
    }
    check_integrity();
    if (HasFailure()) return cuts;
  }
  EXPECT_GT(opened_anew, cuts / 2);
  return cuts;
}

TEST_F(Durability, APowerCutAnywhereLosesNothingThatWasAcknowledged) {
  EXPECT_GT(cut_power_everywhere(64U << 10), 100U);
}

TEST_F(Durability, NorWhereTheLogIsLong) { EXPECT_GT(cut_power_everywhere(64U << 20), 30U); }

TEST_F(Durability, AFullDiskFailsWhatDoesNotFitAndNothingElse) {
  std::uint64_t refused = 0;
  for (std::uint64_t at = 0; at < 60; ++at) {
    SCOPED_TRACE("full from change " + std::to_string(at));
    disk_.restart(0);
    disk_.remove((folder_.path() / "jobs.db").string());
    disk_.remove((folder_.path() / "jobs.db-wal").string());
    states_.clear();
    Result<std::unique_ptr<Store>> store = open();
    ASSERT_TRUE(store);
    disk_.full_from(disk_.changes() + at);
    int step = 0;
    while (step < kSteps && take_step(**store, step)) ++step;
    if (step < kSteps) {
      ++refused;
      EXPECT_FALSE((*store)->commit({}, kStart)) << "a probe must find out";
      check(**store, false);  // reads go on, and nothing of it has happened
      disk_.full_from(FaultyDisk::kNever);
      EXPECT_TRUE((*store)->commit({}, kStart));
      EXPECT_TRUE(take_step(**store, step)) << "there is room again";
      check(**store, false);
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(refused, 30U);
}

TEST_F(Durability, AfterAFailedFlushNothingIsWrittenAnyMore) {
  Result<std::unique_ptr<Store>> store = open();
  ASSERT_TRUE(store);
  ASSERT_TRUE(take_step(**store, 0));
  // The next flush after the writes of a transaction: look for it.
  bool failed = false;
  for (int ahead = 1; !failed && ahead < 200; ++ahead) {
    disk_.fail_flush_at(disk_.changes() + static_cast<std::uint64_t>(ahead));
    failed = !take_step(**store, 4 * ahead);
  }
  ASSERT_TRUE(failed);
  disk_.fail_flush_at(FaultyDisk::kNever);
  EXPECT_FALSE(take_step(**store, 1000));
  const Result<Committed> probe = (*store)->commit({}, kStart);
  ASSERT_FALSE(probe);
  EXPECT_EQ(probe.error().code, ErrorCode::kStoreUnavailable);
  EXPECT_NE(probe.error().message.find("restart"), std::string::npos) << probe.error().message;
  check(**store, false);
  store->reset();
  disk_.restart(1);
  store = open();
  ASSERT_TRUE(store) << store.error().message;
  check(**store, true);
  EXPECT_TRUE((*store)->commit({}, kStart));
}

TEST_F(Durability, AfterAWriteThatFailedHalfwayNothingIsWrittenAnyMore) {
  Result<std::unique_ptr<Store>> store = open();
  ASSERT_TRUE(store);
  ASSERT_TRUE(take_step(**store, 0));
  disk_.fail_write_at(disk_.changes());
  EXPECT_FALSE(take_step(**store, 1));
  EXPECT_FALSE(take_step(**store, 4));
  store->reset();
  disk_.restart(1);
  store = open();
  ASSERT_TRUE(store) << store.error().message;
  check(**store, true);
  EXPECT_TRUE(take_step(**store, 8));
  store->reset();
  check_integrity();
}

TEST_F(Durability, ATransactionIsFewWrites) {
  SqliteOptions options;  // no checkpoint comes between
  options.path = folder_.path() / "jobs.db";
  options.vfs = disk_.name();
  options.checkpoint_thread = false;
  Result<std::unique_ptr<Store>> store = open_sqlite_store(options);
  ASSERT_TRUE(store);
  ASSERT_TRUE(take_step(**store, 0));
  const std::uint64_t before = disk_.changes();
  std::vector<Command> commands;
  for (int i = 0; i < 50; ++i) commands.emplace_back(a_job());
  ASSERT_TRUE((*store)->commit(commands, kStart));
  EXPECT_LT(disk_.changes() - before, 10U);
}

TEST_F(Durability, ATransactionThatChangesNothingWritesNothing) {
  Result<std::unique_ptr<Store>> store = open();
  ASSERT_TRUE(store);
  ASSERT_TRUE(take_step(**store, 0));
  std::vector<Command> settle;
  settle.emplace_back(Sweep{});
  ASSERT_TRUE((*store)->commit(settle, kStart));
  const std::uint64_t before = disk_.changes();
  Claim claim;
  claim.queue = "empty";
  std::vector<Command> commands;
  commands.emplace_back(claim);
  commands.emplace_back(Sweep{});
  commands.emplace_back(Cancel{});
  commands.emplace_back(Start{{states_.begin()->first, 7}});
  commands.emplace_back(ClaimDeliveries{10, kStart + kHour});
  ASSERT_TRUE((*store)->commit(commands, kStart));
  EXPECT_EQ(disk_.changes(), before);
  ASSERT_TRUE((*store)->commit({}, kStart));  // a probe does
  EXPECT_GT(disk_.changes(), before);
}

TEST_F(Durability, WhatWasReadIsNotTakenBackByAPowerCut) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Uuid id;
    {
      Result<std::unique_ptr<Store>> store = open(64U << 20);
      ASSERT_TRUE(store);
      std::vector<Command> commands;
      commands.emplace_back(a_job());
      Result<Committed> applied = (*store)->apply(commands, kStart);  // and not flushed
      ASSERT_TRUE(applied);
      id = take_reply<Submit>(std::move(applied->replies.front())).id;
      ASSERT_TRUE((*store)->find(id).value());
      disk_.cut_power_at(disk_.changes());
    }
    disk_.restart(seed);
    disk_.cut_power_at(FaultyDisk::kNever);
    Result<std::unique_ptr<Store>> store = open(64U << 20);
    ASSERT_TRUE(store);
    EXPECT_TRUE((*store)->find(id).value());
  }
}

}  // namespace
}  // namespace waybill::store::sqlite
