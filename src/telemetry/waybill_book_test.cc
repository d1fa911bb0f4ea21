#include "telemetry/waybill_book.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace waybill::telemetry {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class Remember final : public WaybillSink {
 public:
  void closed(const Record& record) noexcept override { records.push_back(record); }
  std::vector<Record> records;
};

class WaybillBookTest : public testing::Test {
 protected:
  Waybill open(std::string_view request_id = {}) {
    Waybill waybill = book_->open("/v1/route", clock_.now());
    waybill.request_id(request_id);
    return waybill;
  }
  void end(std::string_view request_id, Outcome outcome = Outcome::kCompleted,
           Duration took = milliseconds(1)) {
    Waybill waybill = open(request_id);
    clock_.advance(took);
    waybill.close(outcome, 200);
  }
  void end_many(int n, Outcome outcome = Outcome::kCompleted) {
    for (int i = 0; i < n; ++i) end("", outcome);
  }
  std::vector<std::string> listed(const WaybillFilter& filter) {
    std::vector<std::string> ids;
    for (const Record& record : book_->list(filter)) ids.emplace_back(record.request_id.view());
    return ids;
  }
  void remake(const WaybillBookOptions& options) {
    book_ = std::make_unique<WaybillBook>(options, clock_, std::vector<WaybillSink*>{&sink_});
  }

  FakeClock clock_;
  Remember sink_;
  std::unique_ptr<WaybillBook> book_ =
      std::make_unique<WaybillBook>(WaybillBookOptions{}, clock_, std::vector<WaybillSink*>{&sink_});
};

TEST_F(WaybillBookTest, TheLedgerCountsEachOutcome) {
  Waybill first = open();
  end("", Outcome::kRejected);
  end("", Outcome::kExpired);
  end("", Outcome::kExpired);
  const Ledger ledger = book_->ledger();
  EXPECT_EQ(ledger.accepted, 4U);
  EXPECT_EQ(ledger.in_flight, 1U);
  EXPECT_EQ(ledger.with(Outcome::kRejected), 1U);
  EXPECT_EQ(ledger.with(Outcome::kExpired), 2U);
  EXPECT_EQ(ledger.imbalance(), 0);
}

TEST_F(WaybillBookTest, AnImbalanceHasASign) {
  Ledger ledger{.accepted = 3, .ended = {1}, .in_flight = 1};
  EXPECT_EQ(ledger.imbalance(), 1);
  ledger.in_flight = 3;
  EXPECT_EQ(ledger.imbalance(), -1);
}

TEST_F(WaybillBookTest, WhatIsWrittenIsRead) {
  Waybill waybill = open("abc");
  const TimePoint start = clock_.now();
  waybill.caller("batch");
  waybill.correlation_id("job-7");
  waybill.tokens(12);
  waybill.decision({.route = "coding", .model = "qwen", .tier = "encoder", .reason = "score", .score = 0.5F});
  waybill.stage(Stage::kRead, start, start + microseconds(3));
  waybill.stage(Stage::kEncode, start + microseconds(10), start + microseconds(110));
  clock_.advance(microseconds(250));
  const Uuid id = waybill.id();
  waybill.close(Outcome::kCompleted, 200);

  const auto record = book_->find(to_string(id));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->endpoint, "/v1/route");
  EXPECT_EQ(record->caller, "batch");
  EXPECT_EQ(record->correlation_id, "job-7");
  EXPECT_EQ(record->route, "coding");
  EXPECT_EQ(record->tier, "encoder");
  EXPECT_EQ(record->tokens, 12U);
  EXPECT_EQ(record->duration_us, 250U);
  EXPECT_EQ(record->status, 200U);
  EXPECT_FALSE(record->open);
  const StageTime encode = record->stages[static_cast<std::size_t>(Stage::kEncode)];
  EXPECT_EQ(encode.start_us, 10U);
  EXPECT_EQ(encode.length_us, 100U);
  EXPECT_FALSE(record->stages[static_cast<std::size_t>(Stage::kQueue)].reached());
}

TEST_F(WaybillBookTest, TheTracestateGoesToTheSinksAndIsNotKept) {
  TraceContext context;
  context.sampled = true;
  context.tracestate = "vendor=1";
  Waybill waybill = open("a");
  waybill.trace(context);
  waybill.close(Outcome::kCompleted, 200);
  ASSERT_THAT(sink_.records, SizeIs(1));
  ASSERT_NE(sink_.records[0].tracestate, nullptr);
  EXPECT_EQ(*sink_.records[0].tracestate, "vendor=1");
  EXPECT_EQ(book_->find("a")->tracestate, nullptr);
}

TEST_F(WaybillBookTest, ARequestOfManyDecisionsSaysHowManyWereDegraded) {
  Waybill waybill = open("a");
  waybill.degraded(7);
  waybill.close(Outcome::kCompleted, 200);
  EXPECT_EQ(book_->find("a")->degraded, 7U);
}

TEST_F(WaybillBookTest, AStageToldTwiceKeepsItsStartAndAddsItsLengths) {
  Waybill waybill = open();
  const TimePoint start = clock_.now();
  waybill.stage(Stage::kWrite, start + microseconds(5), start + microseconds(6));
  waybill.stage(Stage::kWrite, start + microseconds(50), start + microseconds(60));
  const StageTime write = waybill.record().stages[static_cast<std::size_t>(Stage::kWrite)];
  EXPECT_EQ(write.start_us, 5U);
  EXPECT_EQ(write.length_us, 11U);
}

TEST_F(WaybillBookTest, TimesOutsideTheRangeStayInIt) {
  Waybill waybill = open();
  const TimePoint start = clock_.now();
  waybill.stage(Stage::kRead, start - hours(1), start - hours(2));
  waybill.stage(Stage::kQueue, start, start + hours(1000));
  waybill.stage(Stage::kQueue, start, start + hours(1000));
  const Record record = waybill.record();
  EXPECT_EQ(record.stages[static_cast<std::size_t>(Stage::kRead)].start_us, 0U);
  EXPECT_EQ(record.stages[static_cast<std::size_t>(Stage::kRead)].length_us, 0U);
  EXPECT_EQ(record.stages[static_cast<std::size_t>(Stage::kQueue)].length_us, StageTime::kNotReached - 1);
}

TEST_F(WaybillBookTest, OneThatIsDroppedOpenFailsWithInternal) {
  {
    const Waybill dropped = open("lost");
  }
  const auto record = book_->find("lost");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->outcome, Outcome::kFailed);
  EXPECT_EQ(record->error_code, "internal");
  EXPECT_EQ(book_->ledger().with(Outcome::kFailed), 1U);
  EXPECT_EQ(book_->ledger().in_flight, 0U);
  EXPECT_THAT(sink_.records, SizeIs(1));
}

TEST_F(WaybillBookTest, MovingNeitherClosesNorDoubles) {
  Waybill a = open("a");
  Waybill b = std::move(a);
  EXPECT_FALSE(a.is_open());  // NOLINT(bugprone-use-after-move): that it is empty is the point
  Waybill& same = b;
  b = std::move(same);  // NOLINT: and that this does nothing
  EXPECT_TRUE(b.is_open());
  EXPECT_EQ(book_->ledger().in_flight, 1U);
  Waybill c = open("c");
  c = std::move(b);  // what c held is dropped
  EXPECT_EQ(book_->find("c")->outcome, Outcome::kFailed);
  EXPECT_TRUE(book_->find("a")->open);
  c.close(Outcome::kCompleted, 200);
  EXPECT_EQ(book_->ledger().imbalance(), 0);
}

TEST_F(WaybillBookTest, AnEmptyHandleIsWrittenInVain) {
  Waybill empty;
  empty.caller("x");
  empty.stage(Stage::kRead, clock_.now(), clock_.now());
  empty.fail({ErrorCode::kInternal, "x", {}}, Stage::kRead);
  EXPECT_TRUE(empty.id().is_nil());
  EXPECT_EQ(book_->ledger().accepted, 0U);
}

TEST_F(WaybillBookTest, ClosingTwiceIsABug) {
  Waybill waybill = open();
  waybill.close(Outcome::kCompleted, 200);
  EXPECT_DEATH(waybill.close(Outcome::kCompleted, 200), "check failed");
}

TEST_F(WaybillBookTest, TheFirstErrorIsKept) {
  Waybill waybill = open();
  waybill.fail({ErrorCode::kOverloaded, "the queue is full", {}}, Stage::kQueue);
  waybill.fail({ErrorCode::kInternal, "later", {}}, Stage::kWrite);
  const Record record = waybill.record();
  EXPECT_EQ(record.error_code, "overloaded");
  EXPECT_EQ(record.error_message, "the queue is full");
  EXPECT_EQ(record.error_stage, Stage::kQueue);
}

TEST_F(WaybillBookTest, OpenOnesAreFoundToo) {
  const Waybill waybill = open("mine");
  EXPECT_TRUE(book_->find("mine")->open);
  EXPECT_TRUE(book_->find(to_string(waybill.id()))->open);
  EXPECT_FALSE(book_->find("other"));
  EXPECT_FALSE(book_->find(""));
  EXPECT_FALSE(book_->find("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"));
}

TEST_F(WaybillBookTest, OfTheSameRequestIdTheLatestIsFound) {
  end("again", Outcome::kFailed);
  end("again", Outcome::kCompleted);
  EXPECT_EQ(book_->find("again")->outcome, Outcome::kCompleted);
}

TEST_F(WaybillBookTest, ARequestIdThatWasCutIsFoundByItsWhole) {
  const std::string id(200, 'x');
  end(id);
  EXPECT_TRUE(book_->find(id));
  EXPECT_FALSE(book_->find(id.substr(0, 10)));
}

TEST_F(WaybillBookTest, ARequestIdThatLooksLikeAUuidIsFound) {
  end("017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
  EXPECT_TRUE(book_->find("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"));
}

TEST_F(WaybillBookTest, ListsTheLatestFirstUpToTheLimit) {
  for (const char* id : {"1", "2", "3"}) end(id);
  const Waybill under_way = open("4");
  EXPECT_THAT(listed({}), ElementsAre("4", "3", "2", "1"));
  EXPECT_THAT(listed({.limit = 2}), ElementsAre("4", "3"));
  EXPECT_THAT(listed({.limit = 0}), IsEmpty());
}

TEST_F(WaybillBookTest, ListsByOutcomeRouteAndTime) {
  end("1", Outcome::kFailed);
  Waybill second = open("2");
  second.decision({.route = "coding"});
  clock_.advance(milliseconds(5));
  const std::int64_t since = second.record().started_us + 1;
  end("3", Outcome::kFailed);
  EXPECT_THAT(listed({.outcome = Outcome::kFailed}), ElementsAre("3", "1"));
  EXPECT_THAT(listed({.outcome = Outcome::kCompleted}), IsEmpty());
  EXPECT_THAT(listed({.route = "coding"}), ElementsAre("2"));
  EXPECT_THAT(listed({.since_us = since}), ElementsAre("3"));
  EXPECT_THAT(listed({.since_us = -1}), SizeIs(3));
  second.close(Outcome::kCompleted, 200);
  EXPECT_THAT(listed({.outcome = Outcome::kCompleted, .route = "coding"}), ElementsAre("2"));
}

TEST_F(WaybillBookTest, KeepsTheLatestAndItsMemoryStaysBounded) {
  remake({.keep = 1000, .keep_per_failure = 0, .keep_slowest = 0});
  end_many(3000);
  const std::size_t bytes = book_->memory_bytes();
  end_many(20'000);
  EXPECT_EQ(book_->memory_bytes(), bytes);
  EXPECT_GE(book_->kept(), 1000U);
  EXPECT_LE(book_->kept(), 1100U);
  EXPECT_EQ(book_->list({.limit = 10'000}).size(), book_->kept());
  EXPECT_EQ(book_->ledger().accepted, 23'000U);
  EXPECT_EQ(book_->ledger().imbalance(), 0);
}

TEST_F(WaybillBookTest, KeepsNoMoreThanTheBytesHold) {
  remake({.keep = 20'000, .max_bytes = 1U << 20});
  end_many(5'000);
  end_many(5'000, Outcome::kFailed);
  EXPECT_LE(book_->memory_bytes(), (1U << 20) + 100'000);
  EXPECT_GT(book_->kept(), 1000U);
}

TEST_F(WaybillBookTest, FailuresOutlastTheLatest) {
  remake({.keep = 100, .keep_per_failure = 3, .keep_slowest = 0});
  for (const char* id : {"f1", "f2", "f3", "f4"}) end(id, Outcome::kFailed);
  end("c1", Outcome::kCancelled);
  end_many(1000);
  EXPECT_FALSE(book_->find("f1"));
  for (const char* id : {"f2", "f3", "f4", "c1"}) EXPECT_TRUE(book_->find(id)) << id;
}

TEST_F(WaybillBookTest, AFloodOfOneOutcomeDoesNotWashOutTheOthers) {
  remake({.keep = 100, .keep_per_failure = 3, .keep_slowest = 0});
  end("bug", Outcome::kFailed);
  end_many(2000, Outcome::kRejected);
  EXPECT_TRUE(book_->find("bug"));
}

TEST_F(WaybillBookTest, TheSlowestOutlastTheLatestForAnHour) {
  remake({.keep = 100, .keep_per_failure = 0, .keep_slowest = 2});
  end("slow", Outcome::kCompleted, milliseconds(900));
  end("slower", Outcome::kCompleted, milliseconds(950));
  end("quick", Outcome::kCompleted, milliseconds(2));
  end_many(1000);
  EXPECT_TRUE(book_->find("slow"));
  EXPECT_TRUE(book_->find("slower"));
  EXPECT_FALSE(book_->find("quick"));
  clock_.advance(hours(2));
  end_many(1000);
  EXPECT_FALSE(book_->find("slow"));
}

TEST_F(WaybillBookTest, SinksSeeTheRecordAsItIsKept) {
  end("seen", Outcome::kExpired, milliseconds(7));
  ASSERT_THAT(sink_.records, SizeIs(1));
  EXPECT_EQ(sink_.records[0].request_id, "seen");
  EXPECT_EQ(sink_.records[0].duration_us, 7000U);
  EXPECT_FALSE(sink_.records[0].open);
}

TEST(Record, IsAsSmallAsItIsSaidToBe) { EXPECT_LE(20'000 * sizeof(Record), 13'500'000U); }

TEST(InlineString, IsCutBetweenCharacters) {
  InlineString<8> text;
  text = "abcdef\u00e9";  // the last character has two bytes, of which one would fit
  EXPECT_EQ(text.view(), "abcdef");
  text = "abcde\u00e9x";
  EXPECT_EQ(text.view(), "abcde\u00e9");
  text = "1234567";
  EXPECT_EQ(text.view(), "1234567");
  text = "\x80\x80\x80\x80\x80\x80\x80\x80\x80";  // not UTF-8: cut somewhere
  EXPECT_LE(text.view().size(), 7U);
  text = "";
  EXPECT_TRUE(text.empty());
}

TEST(Outcome, ItsNamesAreReadBack) {
  for (std::size_t i = 0; i < kOutcomes; ++i) {
    EXPECT_EQ(parse_outcome(to_string(static_cast<Outcome>(i))), static_cast<Outcome>(i));
  }
  EXPECT_FALSE(parse_outcome("ended"));
}

}  // namespace
}  // namespace waybill::telemetry
