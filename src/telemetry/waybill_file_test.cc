#include "telemetry/waybill_file.h"

#include <csignal>
#include <sstream>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/file.h"
#include "base/temporary_folder_test.h"
#include "telemetry/record_json.h"
#include "telemetry/records_test.h"

namespace waybill::telemetry {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::SizeIs;

std::vector<std::string> lines(const std::filesystem::path& path) {
  std::istringstream text(read_file(path).value_or(""));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

class WaybillFileTest : public testing::Test {
 protected:
  void write(int n, const WaybillFileOptions& options) {
    auto file = WaybillFile::open(options);
    ASSERT_TRUE(file);
    for (int i = 0; i < n; ++i) {
      record_.tokens = static_cast<std::uint32_t>(++written_);
      (*file)->closed(record_);
    }
    (*file)->stop(seconds(60));
    EXPECT_EQ((*file)->dropped(), 0U);
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "deeper" / "waybills.jsonl";
  Record record_ = test_record();
  int written_ = 0;
};

TEST_F(WaybillFileTest, EachClosedWaybillIsALine) {
  write(3, {.path = path_});
  ASSERT_THAT(lines(path_), SizeIs(3));
  record_.tokens = 2;
  EXPECT_EQ(lines(path_)[1], to_json(record_));
}

TEST_F(WaybillFileTest, AFileThatIsThereIsAppendedTo) {
  write(2, {.path = path_});
  write(2, {.path = path_});
  EXPECT_THAT(lines(path_), SizeIs(4));
}

TEST_F(WaybillFileTest, RotatesBySizeAndForgetsTheOldest) {
  const std::uint64_t line = to_json(record_).size() + 3;
  write(25, {.path = path_, .max_bytes = 10 * line, .keep = 2});
  std::vector<std::string> all;
  for (const char* suffix : {".2", ".1", ""}) {
    const std::filesystem::path path = path_.string() + suffix;
    EXPECT_LE(std::filesystem::file_size(path), 10 * line) << suffix;
    const auto some = lines(path);
    all.insert(all.end(), some.begin(), some.end());
  }
  EXPECT_FALSE(std::filesystem::exists(path_.string() + ".3"));
  ASSERT_THAT(all, SizeIs(25));
  for (int i = 0; i < 25; ++i)
    EXPECT_EQ(boost::json::parse(all[static_cast<std::size_t>(i)]).at("tokens").as_int64(), i + 1);
  write(30, {.path = path_, .max_bytes = 10 * line, .keep = 2});
  EXPECT_EQ(boost::json::parse(lines(path_).back()).at("tokens").as_int64(), 55);
  EXPECT_FALSE(std::filesystem::exists(path_.string() + ".3"));
}

TEST_F(WaybillFileTest, ALineLongerThanTheBoundHasAFileOfItsOwn) {
  write(3, {.path = path_, .max_bytes = 10, .keep = 5});
  for (const char* suffix : {".2", ".1", ""}) EXPECT_THAT(lines(path_.string() + suffix), SizeIs(1));
}

TEST_F(WaybillFileTest, WithNothingToKeepTheFileStartsAgain) {
  write(3, {.path = path_, .max_bytes = 10, .keep = 0});
  EXPECT_THAT(lines(path_), SizeIs(1));
  EXPECT_FALSE(std::filesystem::exists(path_.string() + ".1"));
}

TEST_F(WaybillFileTest, AFullDiskIsCountedAndSaid) {
  auto file = WaybillFile::open({.path = "/dev/full"});
  ASSERT_TRUE(file);
  for (int i = 0; i < 5; ++i) (*file)->closed(record_);
  (*file)->stop(seconds(60));
  EXPECT_EQ((*file)->dropped(), 5U);
  EXPECT_THAT((*file)->last_error(), HasSubstr("No space left"));
}

// A limit on the size of files cuts a write in its midst, as a disk does that becomes full.
TEST_F(WaybillFileTest, ALineThatWasCutDoesNotSpoilTheNext) {
  write(1, {.path = path_});
  rlimit unlimited{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limited = {std::filesystem::file_size(path_) + 10, unlimited.rlim_max};
  auto file = WaybillFile::open({.path = path_});
  ASSERT_TRUE(file);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
  (*file)->closed(record_);
  (*file)->stop(seconds(60));
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &unlimited), 0);
  std::signal(SIGXFSZ, before);
  EXPECT_EQ((*file)->dropped(), 1U);
  write(1, {.path = path_});
  ASSERT_THAT(lines(path_), SizeIs(2));
  EXPECT_EQ(lines(path_)[1], to_json(record_));
}

TEST_F(WaybillFileTest, APathThatCannotBeOpenedIsAnError) {
  const auto file = WaybillFile::open({.path = folder_.path()});
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kIo);
}

TEST(RecordJson, OfOneThatIsUnderWay) {
  Record record;
  record.id = *parse_uuid("017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
  record.endpoint = "/v1/route";
  record.started_us = kTestTimeUs;
  EXPECT_EQ(to_json(record), R"({"id":"017f22e2-79b0-7cc3-98c4-dc0c0c07398f","endpoint":"/v1/route",)"
                             R"("started":"2026-01-01T00:00:00.123456Z","outcome":"in_flight","stages":[]})");
}

TEST(RecordJson, OfOneThatFailed) {
  Record record = test_record(Outcome::kExpired);
  record.id = *parse_uuid("017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
  EXPECT_EQ(to_json(record),
            R"({"id":"017f22e2-79b0-7cc3-98c4-dc0c0c07398f","endpoint":"/v1/route",)"
            R"("started":"2026-01-01T00:00:00.123456Z","outcome":"expired","duration_us":1500,"status":504,)"
            R"("request_id":"abc-1","caller":"batch","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736",)"
            R"("span_id":"0102030405060708","sampled":true,)"
            R"("stages":[{"stage":"queue","start_us":20,"length_us":300},)"
            R"({"stage":"encode","start_us":320,"length_us":1000}],)"
            R"("decision":{"route":"coding","model":"qwen2.5-coder-32b","score":0.97,"tier":"encoder",)"
            R"("degraded":false,"reason":"score"},"tokens":12,)"
            R"("error":{"code":"deadline_exceeded","message":"the deadline passed","stage":"encode"}})");
}

TEST(RecordJson, OfTheLedger) {
  EXPECT_EQ(to_json(Ledger{.accepted = 7, .ended = {3, 0, 1, 0, 2}, .in_flight = 1}),
            R"({"accepted":7,"completed":3,"failed":0,"rejected":1,"cancelled":0,"expired":2,"in_flight":1,)"
            R"("balanced":true})");
}

TEST(RecordJson, TimesBefore1970AreTimesToo) { EXPECT_EQ(format_time(-1), "1969-12-31T23:59:59.999999Z"); }

}  // namespace
}  // namespace waybill::telemetry
