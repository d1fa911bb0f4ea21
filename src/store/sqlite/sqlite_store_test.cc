// What is SQLite's own: how it is opened, refused, checked, copied; its files.
#include "store/sqlite/sqlite_store.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "store/sqlite/connection.h"
#include "store/sqlite/maintenance.h"
#include "store/sqlite/schema.h"
#include "store/store_conformance_test.h"

namespace waybill::store::sqlite {
namespace {

namespace fs = std::filesystem;

// While it lives no file can be opened by this process; those that are open can be used.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{0, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

 private:
  rlimit before_{};
};

class SqliteFile : public testing::Test {
 protected:
  Result<std::unique_ptr<Store>> open() {
    SqliteOptions options;
    options.path = path_;
    options.inline_bytes = 256;
    options.recent_keys = 8;
    return open_sqlite_store(options);
  }
  void sql(const char* text) {
    auto connection = Connection::open(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    ASSERT_TRUE(connection);
    (*connection)->execute(text);
    EXPECT_FALSE((*connection)->failed()) << (*connection)->message();
  }
  static Reply commit(Store& store, Command command, Time now = kStart) {
    std::vector<Command> commands;
    commands.push_back(std::move(command));
    Result<Committed> committed = store.commit(commands, now);
    EXPECT_TRUE(committed) << committed.error().message;
    return std::move(committed->replies.front());
  }
  static Submit large_job() {
    Submit submit = a_job();
    submit.body = std::string(5000, 'x');
    return submit;
  }
  std::size_t blob_files() const {
    std::size_t files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(path_.string() + "-blobs")) {
      if (entry.is_regular_file()) ++files;
    }
    return files;
  }

  TemporaryFolder folder_;
  const fs::path path_ = folder_.path() / "below" / "jobs.db";
};

TEST_F(SqliteFile, OneProcessAtATimeHasIt) {
  auto first = open();
  ASSERT_TRUE(first) << first.error().message;
  const auto second = open();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kStoreUnavailable);
  EXPECT_NE(second.error().message.find(std::to_string(::getpid())), std::string::npos)
      << second.error().message;
  first->reset();
  EXPECT_TRUE(open());
}

TEST_F(SqliteFile, ANewerOneIsRefused) {
  open()->reset();
  sql("PRAGMA user_version = 99");
  const auto store = open();
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(store.error().message.find("newer"), std::string::npos);
}

TEST_F(SqliteFile, AnOlderOneIsBroughtUpToDate) {
  Uuid id;
  {
    const auto store = open();
    id = take_reply<Submit>(commit(**store, a_job())).id;
  }
  sql("DROP TABLE facts; DROP TABLE recent_keys_0; DROP TABLE recent_keys_1; PRAGMA user_version = 1");  // as
                                                                                                         // the
                                                                                                         // first
                                                                                                         // version
                                                                                                         // was
  const auto store = open();
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_TRUE((*store)->find(id).value());
  commit(**store, Remember{"a", "b"});
  EXPECT_EQ((*store)->remembered("").value().size(), 1U);
}

TEST_F(SqliteFile, AForeignOneIsRefusedAndLeftAlone) {
  fs::create_directories(path_.parent_path());
  sql("CREATE TABLE theirs (x)");
  const auto size = fs::file_size(path_);
  auto store = open();
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(fs::file_size(path_), size);
  EXPECT_FALSE(fs::exists(path_.string() + "-wal"));
  std::ofstream(path_) << std::string(10'000, 'z');
  store = open();
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kCorrupt);
}

TEST_F(SqliteFile, LargeBodiesAreFilesThatGoWithTheLastJobThatNamesThem) {
  auto store = open();
  ASSERT_TRUE(store);
  const Uuid a = take_reply<Submit>(commit(**store, large_job())).id;
  const Uuid b = take_reply<Submit>(commit(**store, large_job())).id;
  EXPECT_EQ(blob_files(), 1U);
  EXPECT_EQ((*store)->stats().value().blob_bytes, 5000U);
  for (const Uuid& id : {a, b}) {
    EXPECT_EQ(blob_files(), 1U);
    commit(**store, Cancel{id});
    commit(**store, Remove{id});
  }
  EXPECT_EQ(blob_files(), 0U);
}

TEST_F(SqliteFile, ALargeBodyThatCannotBeWrittenFailsItsTransactionOnly) {
  auto store = open();
  ASSERT_TRUE(store);
  const fs::path blobs = path_.string() + "-blobs";
  std::ofstream(blobs) << "in the way of the folder";  // also root is refused
  const auto refused = [&](Submit submit) {
    std::vector<Command> commands;
    commands.emplace_back(a_job());
    commands.emplace_back(std::move(submit));
    const Result<Committed> committed = (*store)->commit(commands, kStart);
    ASSERT_FALSE(committed);
    EXPECT_EQ(committed.error().code, ErrorCode::kStoreUnavailable);
    EXPECT_EQ(committed.error().message.find(folder_.path().string()), std::string::npos)
        << committed.error().message;
  };
  refused(large_job());
  EXPECT_EQ((*store)->stats().value().jobs, 0U);
  commit(**store, a_job());
  fs::remove(blobs);
  commit(**store, large_job());
  Submit other = large_job();
  other.body += "y";
  {
    const NoMoreDescriptors none;
    refused(other);
  }
  commit(**store, other);
  EXPECT_EQ((*store)->stats().value().jobs, 3U);
  EXPECT_EQ(blob_files(), 2U);
  store->reset();
  EXPECT_EQ(check_store(path_, {}).value().problems, std::vector<std::string>());
}

// Before the folder's entry is flushed there is no folder: the next attempt flushes it.
TEST_F(SqliteFile, AFolderOfLargeBodiesThatCouldNotBeFlushedDoesNotStay) {
  auto store = open();
  ASSERT_TRUE(store);
  {
    const NoMoreDescriptors none;
    std::vector<Command> commands;
    commands.emplace_back(large_job());
    ASSERT_FALSE((*store)->commit(commands, kStart));
  }
  EXPECT_FALSE(fs::exists(path_.string() + "-blobs"));
  commit(**store, large_job());
}

TEST_F(SqliteFile, AJobWhoseBodyIsLostIsADeadLetterThatSaysSo) {
  auto store = open();
  ASSERT_TRUE(store);
  const Uuid id = take_reply<Submit>(commit(**store, large_job())).id;
  fs::remove_all(path_.string() + "-blobs");
  Claim claim;
  claim.queue = "q";
  claim.until = kStart + kHour;
  EXPECT_TRUE(take_reply<Claim>(commit(**store, claim)).empty());
  const Job job = (*store)->find(id).value().value();
  EXPECT_EQ(job.state, State::kDead);
  ASSERT_EQ(job.errors.size(), 1U);
  EXPECT_EQ(job.errors[0].code, "body_lost");
  EXPECT_FALSE((*store)->body(id));
}

TEST_F(SqliteFile, WhatACrashLeavesIsRemovedWhenItIsOpenedAgain) {
  open()->reset();
  const fs::path orphan = path_.string() + "-blobs/ab/" + std::string(62, 'c');
  fs::create_directories(orphan.parent_path());
  std::ofstream(orphan) << "left";
  open()->reset();
  EXPECT_TRUE(fs::exists(orphan));  // the last one ended well: nothing is looked for
  std::ofstream(path_.string() + "-lock") << "12345\n";
  open()->reset();
  EXPECT_FALSE(fs::exists(orphan));
}

TEST_F(SqliteFile, ReadsGoOnBesideWrites) {
  auto store = open();
  ASSERT_TRUE(store);
  const Uuid id = take_reply<Submit>(commit(**store, a_job())).id;
  std::atomic<bool> stop = false;
  std::atomic<int> reads = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        std::uint64_t told = 0;
        for (const Depth& depth : (*store)->depths().value()) told += depth.jobs;
        EXPECT_GE(told, 1U);
        EXPECT_TRUE((*store)->find(id).value());
        EXPECT_TRUE((*store)->stats());
        ++reads;
      }
    });
  }
  for (int i = 0; i < 50 || reads < 30; ++i) commit(**store, large_job());
  stop = true;
  for (std::thread& reader : readers) reader.join();
}

TEST_F(SqliteFile, ACheckFindsWhatIsWrong) {
  {
    auto store = open();
    ASSERT_TRUE(store);
    commit(**store, large_job());
    const auto well = check_store(path_, {});  // while it is used
    ASSERT_TRUE(well) << well.error().message;
    EXPECT_EQ(well->problems, std::vector<std::string>());
    EXPECT_EQ(well->jobs, 1U);
    EXPECT_EQ(well->blobs, 1U);
  }
  sql("UPDATE depths SET jobs = 7");
  sql("INSERT INTO keys VALUES (4, 0, 0, 0, 0, 0)");
  fs::remove_all(path_.string() + "-blobs");
  const auto check = check_store(path_, {});
  ASSERT_TRUE(check);
  EXPECT_EQ(check->problems.size(), 3U);
  EXPECT_EQ(check_store(folder_.path() / "nothing.db", {}).error().code, ErrorCode::kNotFound);
}

TEST_F(SqliteFile, ABackupIsAStoreOfItsOwn) {
  const fs::path target = folder_.path() / "backup.db";
  Uuid id;
  {
    auto store = open();
    ASSERT_TRUE(store);
    id = take_reply<Submit>(commit(**store, large_job())).id;
    const auto backup = back_up_store(path_, target, {});
    ASSERT_TRUE(backup) << backup.error().message;
    EXPECT_EQ(backup->blobs, 1U);
    commit(**store, a_job());
    EXPECT_EQ(back_up_store(path_, target, {}).error().code, ErrorCode::kInvalidInput);
  }
  EXPECT_TRUE(check_store(target, {})->problems.empty());
  SqliteOptions options;
  options.path = target;
  auto copy = open_sqlite_store(options);
  ASSERT_TRUE(copy) << copy.error().message;
  EXPECT_EQ((*copy)->list({}).value().size(), 1U);
  EXPECT_EQ((*copy)->body(id).value().value().size(), 5000U);
}

TEST_F(SqliteFile, SpaceIsGivenBack) {
  {
    auto store = open();
    ASSERT_TRUE(store);
    std::vector<Command> commands;
    for (int i = 0; i < 2000; ++i) {
      Submit submit = a_job();
      submit.body = std::string(250, 'x');
      submit.attributes = std::string(2000, 'a');
      commands.emplace_back(std::move(submit));
    }
    ASSERT_TRUE((*store)->commit(commands, kStart));
    commands.clear();
    JobFilter all;
    all.limit = 5000;
    for (const Job& job : (*store)->list(all).value()) commands.emplace_back(Cancel{job.id});
    ASSERT_TRUE((*store)->commit(commands, kStart));
    const std::uint64_t before = (*store)->stats().value().file_bytes;
    const Sweep sweep{{{"q", kHour, kHour, kHour}}, {}, 100};
    for (int i = 0; i < 60; ++i) commit(**store, sweep, kStart + 2 * kHour);
    const StoreStats stats = (*store)->stats().value();
    EXPECT_EQ(stats.jobs, 0U);
    EXPECT_LT(stats.file_bytes, before);
    EXPECT_EQ(vacuum_store(path_, {}).error().code, ErrorCode::kStoreUnavailable);
  }
  const auto vacuum = vacuum_store(path_, {});
  ASSERT_TRUE(vacuum) << vacuum.error().message;
  EXPECT_LE(vacuum->bytes_after, vacuum->bytes_before);
  EXPECT_TRUE(check_store(path_, {})->problems.empty());
  EXPECT_EQ(look_at_store(path_)->stats.jobs, 0U);
}

TEST_F(SqliteFile, WhatWouldBeWrittenWhereNobodyFindsItIsRefused) {
  auto store = open();
  ASSERT_TRUE(store);
  commit(**store, a_job());
  const fs::path aside = folder_.path() / "aside";
  for (const char* suffix : {"", "-wal", "-lock"}) {
    const fs::path file = path_.string() + suffix;
    const auto probe = [&store] { return (*store)->commit({}, kStart); };
    fs::rename(file, aside);
    ASSERT_FALSE(probe()) << file;
    EXPECT_EQ(probe().error().code, ErrorCode::kStoreUnavailable);
    EXPECT_TRUE(probe().error().message.starts_with(file.string())) << probe().error().message;
    const std::vector<Command> submit{a_job()};
    EXPECT_FALSE((*store)->commit(submit, kStart)) << "while it is known, each commit is refused";
    fs::copy_file(aside, file);
    EXPECT_FALSE(probe()) << "another file in its place";
    fs::rename(aside, file);
    EXPECT_TRUE(probe()) << file;
    EXPECT_TRUE((*store)->commit(submit, kStart));
  }
}

TEST_F(SqliteFile, ThatItsFileIsGoneIsSeenWithoutBeingAsked) {
  auto store = open();
  ASSERT_TRUE(store);
  fs::remove(path_);
  bool refused = false;
  for (int i = 0; i < 30'000 && !refused; ++i) {
    refused = !(*store)->flush();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(refused);
}

}  // namespace
}  // namespace waybill::store::sqlite
