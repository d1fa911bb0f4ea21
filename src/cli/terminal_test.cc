#include "cli/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace waybill::cli {
namespace {

using testing::ElementsAre;

TEST(Terminal, WideAndCombiningCharactersTakeTheColumnsThatTheyTake) {
  EXPECT_EQ(display_width("route"), 5U);
  EXPECT_EQ(display_width("naïve"), 5U);
  EXPECT_EQ(display_width("e\u0301"), 1U);
  EXPECT_EQ(display_width("日本"), 4U);
  EXPECT_EQ(display_width("\x1B[1mbold\x1B[0m"), 4U);
}

TEST(Terminal, LongTextIsCutWithAnEllipsis) {
  EXPECT_EQ(fit_width("short", 10), "short");
  EXPECT_EQ(fit_width("exactly", 7), "exactly");
  EXPECT_EQ(fit_width("too long", 5), "too …");
  EXPECT_EQ(fit_width("日本語", 5), "日本…");
  EXPECT_EQ(fit_width("two\nlines", 20), "two lines");
  EXPECT_EQ(fit_width("x", 0), "");
}

TEST(Terminal, EscapesInTextFromOutsideCannotReachTheTerminal) {
  EXPECT_EQ(fit_width("\x1B[2J", 10), " [2J");
}

TEST(Terminal, WrapsAtSpacesAndKeepsLineBreaks) {
  EXPECT_THAT(wrap("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(wrap("one\n\ntwo", 7), ElementsAre("one", "", "two"));
  EXPECT_THAT(wrap("incomprehensible word", 7), ElementsAre("incomprehensible", "word"));
  EXPECT_THAT(wrap("", 7), ElementsAre(""));
}

TEST(Terminal, NumbersHaveAsManyDigitsAsAPersonReads) {
  EXPECT_EQ(human_seconds(0.4e-6), "400 ns");
  EXPECT_EQ(human_seconds(3.14159e-6), "3.14 µs");
  EXPECT_EQ(human_seconds(0.0012), "1.2 ms");
  EXPECT_EQ(human_seconds(2.5), "2.5 s");
  EXPECT_EQ(human_seconds(75), "1:15");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(90'868'376), "90.9 MB");
  EXPECT_EQ(human_bytes(999'990'000), "1.0 GB");
  EXPECT_EQ(human_count(1234), "1234");
  EXPECT_EQ(human_count(45'678), "45.7 k");
  EXPECT_EQ(human_count(4.48e6), "4.48 M");
}

TEST(Terminal, BarsHaveEighths) {
  EXPECT_EQ(bar(0, 4), "");
  EXPECT_EQ(bar(1, 4), "████");
  EXPECT_EQ(bar(0.5, 1), "▌");
  EXPECT_EQ(bar(7, 2), "██");
}

TEST(Terminal, TableColumnsLineUp) {
  Table table({{"route", Table::Align::kLeft}, {"texts", Table::Align::kRight}});
  table.add_row({"coding", "7"});
  table.add_row({"日本", "1234567"});
  EXPECT_EQ(table.text(), "route     texts\ncoding        7\n日本    1234567\n");
}

TEST(Terminal, ColoursFollowTheChoice) {
  set_color(ColorChoice::kAlways);
  EXPECT_EQ(paint(Style::kRed, "x"), "\x1B[31mx\x1B[0m");
  set_color(ColorChoice::kNever);
  EXPECT_EQ(paint(Style::kRed, "x"), "x");
  set_color(ColorChoice::kAuto);
}

}  // namespace
}  // namespace waybill::cli
