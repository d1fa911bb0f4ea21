#include "telemetry/waybill_book.h"

#include <gtest/gtest.h>

namespace waybill::telemetry {
namespace {

TEST(WaybillBook, OpeningAndClosingMovesTheLedger) {
  const FakeClock clock;
  WaybillBook book({}, clock);
  Waybill waybill = book.open("/route", clock.now());
  EXPECT_EQ(book.ledger().in_flight, 1U);
  waybill.close(Outcome::kCompleted, 200);
  EXPECT_EQ(book.ledger().in_flight, 0U);
  EXPECT_EQ(book.ledger().with(Outcome::kCompleted), 1U);
  EXPECT_EQ(book.ledger().imbalance(), 0);
}

}  // namespace
}  // namespace waybill::telemetry
