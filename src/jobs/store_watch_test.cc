#include "jobs/store_watch.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temporary_folder_test.h"

namespace waybill::jobs {
namespace {

using testing::HasSubstr;
using testing::Not;

class StoreWatchTest : public testing::Test {
 protected:
  static std::size_t count(const std::string& text, std::string_view what) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++found;
    return found;
  }
  // What the log says, once it has been stopped.
  std::string said() {
    log_.reset();
    return read_file(path_, 1U << 20).value();
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "log";
  std::unique_ptr<telemetry::Log> log_ = telemetry::Log::make({.file = path_}).value();
  StoreWatch watch_{*log_, "/var/lib/jobs.db"};
  const Error full_{ErrorCode::kStoreUnavailable, "the disk is full", ""};
};

TEST_F(StoreWatchTest, SaysOnceThatItCannotBeWrittenAndOnceThatItCan) {
  for (int i = 0; i < 2; ++i) {
    watch_.failed(full_);
    watch_.look(false);
    watch_.failed(full_);
    watch_.look(true);
    watch_.look(true);
  }
  const std::string said = this->said();
  EXPECT_EQ(count(said, "cannot be written"), 2U) << said;
  EXPECT_EQ(count(said, "can be written again"), 2U) << said;
  EXPECT_THAT(said, HasSubstr("the disk is full"));
  EXPECT_THAT(said, HasSubstr("/var/lib/jobs.db"));
}

TEST_F(StoreWatchTest, SeesItWithoutBeingTold) {
  watch_.look(false);
  watch_.look(false);
  watch_.look(false);
  EXPECT_EQ(count(said(), "cannot be written"), 1U);
}

TEST_F(StoreWatchTest, OtherErrorsAreNotAboutTheStore) {
  watch_.failed({ErrorCode::kOverloaded, "too much", ""});
  watch_.look(true);
  EXPECT_THAT(said(), Not(HasSubstr("store")));
}

}  // namespace
}  // namespace waybill::jobs
