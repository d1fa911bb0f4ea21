#include "telemetry/log.h"

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/temporary_folder_test.h"
#include "telemetry/line_budget.h"
#include "telemetry/log_line.h"
#include "telemetry/record_json.h"
#include "telemetry/records_test.h"

namespace waybill::telemetry {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::SizeIs;

class LogTest : public testing::Test {
 protected:
  std::unique_ptr<Log> make(LogOptions options = {}) {
    options.file = path_;
    auto log = Log::make(options);
    EXPECT_TRUE(log.has_value());
    return *std::move(log);
  }
  // The lines in the file, once the log has been stopped.
  std::vector<std::string> lines(Log& log) {
    log.stop(seconds(60));
    std::istringstream text(read_file(path_).value_or(""));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "waybill.log";
};

TEST_F(LogTest, AnEventIsOneJsonLine) {
  const auto log = make();
  log->warn("a \"thing\" happened", {{"count", 3}, {"share", 0.5}, {"why", "so\nit goes"}, {"bad", true}});
  const auto written = lines(*log);
  ASSERT_THAT(written, SizeIs(1));
  const boost::json::value line = boost::json::parse(written[0]);
  EXPECT_EQ(line.at("level").as_string(), "warn");
  EXPECT_EQ(line.at("message").as_string(), "a \"thing\" happened");
  EXPECT_EQ(line.at("count").as_int64(), 3);
  EXPECT_EQ(line.at("share").as_double(), 0.5);
  EXPECT_EQ(line.at("why").as_string(), "so\nit goes");
  EXPECT_TRUE(line.at("bad").as_bool());
  EXPECT_THAT(std::string(line.at("time").as_string()), MatchesRegex("[0-9-]+T[0-9:]+\\.[0-9]+Z"));
}

TEST_F(LogTest, ARequestIsOneJsonLineWithItsRecord) {
  const auto log = make();
  log->closed(test_record(Outcome::kExpired));
  const auto written = lines(*log);
  ASSERT_THAT(written, SizeIs(1));
  const boost::json::value line = boost::json::parse(written[0]);
  EXPECT_EQ(line.at("level").as_string(), "warn");
  EXPECT_EQ(line.at("outcome").as_string(), "expired");
  EXPECT_EQ(line.at("error").at("stage").as_string(), "encode");
  EXPECT_EQ(line.at("time").as_string(), "2026-01-01T00:00:00.124956Z");
  EXPECT_FALSE(line.as_object().contains("left_out"));
}

TEST_F(LogTest, TheLevelIsALowerBound) {
  const auto log = make({.level = Level::kWarn});
  log->debug("no");
  log->info("no");
  log->closed(test_record(Outcome::kCompleted));
  log->warn("yes");
  log->closed(test_record(Outcome::kRejected));
  log->closed(test_record(Outcome::kFailed));
  EXPECT_THAT(lines(*log), SizeIs(3));
}

TEST_F(LogTest, OffIsSilent) {
  const auto log = make({.level = Level::kOff});
  log->error("no");
  log->closed(test_record(Outcome::kFailed));
  EXPECT_THAT(lines(*log), IsEmpty());
}

TEST_F(LogTest, HealthyRequestsAreWrittenByTheRateAndFailuresAlways) {
  const auto log = make({.healthy_per_second = 5});
  Record record = test_record();
  for (int i = 0; i < 100; ++i) log->closed(record);
  for (int i = 0; i < 100; ++i) log->closed(test_record(Outcome::kRejected));
  record.started_us += 1'000'000;
  log->closed(record);
  const auto written = lines(*log);
  ASSERT_THAT(written, SizeIs(106));
  EXPECT_EQ(boost::json::parse(written.back()).at("left_out").as_int64(), 95);
}

TEST_F(LogTest, AFullQueueDropsAndCounts) {
  // A pipe that nobody reads: the writing thread stands still once it is full.
  const std::filesystem::path pipe = folder_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  auto log = Log::make({.file = pipe, .queue = 10});
  ASSERT_TRUE(log);
  for (int i = 0; i < 5'000; ++i)
    (*log)->error("a line of some length that fills the pipe in the end, and then no more");
  EXPECT_GT((*log)->dropped(), 0U);
  (*log)->stop(std::chrono::milliseconds(10));  // does not wait for the pipe
  const std::uint64_t dropped = (*log)->dropped();
  (*log)->error("too late");
  EXPECT_EQ((*log)->dropped(), dropped + 1);
  ::close(reader);  // the thread that was left behind gets EPIPE, which nobody hears
}

TEST_F(LogTest, AFileThatCannotBeWrittenIsSaid) {
  const auto log = Log::make({.file = folder_.path()});
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code, ErrorCode::kIo);
  EXPECT_THAT(log.error().message, HasSubstr(folder_.path().string()));
}

TEST(LogLine, TextIsForPeople) {
  std::string out;
  append_text(out, {.level = Level::kWarn, .what = RequestLine{test_record(Outcome::kExpired), 7}});
  EXPECT_THAT(
      out, testing::StartsWith("/v1/route 504 expired 1.500 ms route=coding tier=encoder stage=encode "
                               "error=deadline_exceeded message=\"the deadline passed\" caller=batch id="));
  EXPECT_THAT(out, testing::EndsWith(" left_out=7"));
}

TEST(LogLine, TextFromOutsideCannotMoveTheCursor) {
  std::string out;
  append_event(out, "hello", {{"name", "\x1b[2J"}, {"empty", ""}, {"plain", "word"}}, true);
  EXPECT_EQ(out, "hello name=\"\\u001b[2J\" empty=\"\" plain=word");
}

TEST(LineBudget, ASecondsWorthAtOnceThenSpread) {
  LineBudget budget(4);
  std::int64_t now = 10'000'000;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(budget.take(now), 0U);
  EXPECT_FALSE(budget.take(now));
  EXPECT_FALSE(budget.take(now + 200'000));
  EXPECT_EQ(budget.take(now + 250'000), 2U);
  EXPECT_FALSE(budget.take(now + 250'000));
  now += 60'000'000;
  EXPECT_EQ(budget.take(now), 1U);
}

TEST(LineBudget, LessThanOneASecond) {
  LineBudget budget(0.1);
  EXPECT_EQ(budget.take(1'000'000), 0U);
  EXPECT_FALSE(budget.take(10'000'000));
  EXPECT_EQ(budget.take(11'000'000), 1U);
}

TEST(LineBudget, AClockThatIsSetBackSilencesNothing) {
  LineBudget budget(4);
  for (int i = 0; i < 5; ++i) (void)budget.take(90'000'000'000);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(budget.take(10'000'000)) << i;
  EXPECT_FALSE(budget.take(10'000'000));
  EXPECT_FALSE(budget.take(9'500'000)) << "threads may come in another order than their times";
}

TEST(LineBudget, None) {
  LineBudget budget(0);
  EXPECT_FALSE(budget.take(1'000'000));
}

}  // namespace
}  // namespace waybill::telemetry
