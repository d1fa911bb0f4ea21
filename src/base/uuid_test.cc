#include "base/uuid.h"

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace waybill {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Time = std::chrono::sys_time<nanoseconds>;

TEST(Uuid, SaysItsTimeVersionAndVariant) {
  // RFC 9562, appendix A.6: 2022-02-22T19:22:22.000Z.
  const Uuid id = uuid_v7(Time(milliseconds(0x017F22E279B0)));
  const std::string text = to_string(id);
  EXPECT_EQ(text.substr(0, 15), "017f22e2-79b0-7");
  EXPECT_EQ(text.size(), 36U);
  EXPECT_EQ(id.bytes[8] >> 6, 2);
}

TEST(Uuid, TheFractionOfTheMillisecondComesNext) {
  const Time start(milliseconds(1'700'000'000'000));
  EXPECT_EQ(uuid_v7_high(start) & 0xFFF, 0U);
  EXPECT_EQ(uuid_v7_high(start + nanoseconds(500'000)) & 0xFFF, 2048U);
  EXPECT_EQ(uuid_v7_high(start + nanoseconds(999'999)) & 0xFFF, 4095U);
}

TEST(Uuid, IdsOfOneThreadGrowEvenWhenTheClockStandsStillOrStepsBack) {
  std::thread([] {
    const Time start(milliseconds(1'700'000'000'000));
    Uuid last = uuid_v7(start);
    for (int i = 0; i < 100'000; ++i) {
      const Uuid next = uuid_v7(i % 3 == 0 ? start - milliseconds(i) : start);
      ASSERT_LT(last, next);
      last = next;
    }
  }).join();
}

TEST(Uuid, ThreadsDoNotMakeTheSameId) {
  std::vector<std::vector<Uuid>> made(4);
  {
    std::vector<std::jthread> threads;
    for (auto& list : made) {
      threads.emplace_back([&list] {
        for (int i = 0; i < 20'000; ++i) list.push_back(uuid_v7());
      });
    }
  }
  std::set<Uuid> all;
  for (const auto& list : made) {
    EXPECT_TRUE(std::ranges::is_sorted(list));
    all.insert(list.begin(), list.end());
  }
  EXPECT_EQ(all.size(), 80'000U);
}

TEST(Uuid, TextComesBack) {
  const Uuid id = uuid_v7();
  EXPECT_EQ(parse_uuid(to_string(id)), id);
  EXPECT_EQ(to_string(parse_uuid("017F22E2-79B0-7CC3-98C4-DC0C0C07398F").value()),
            "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
}

TEST(Uuid, OtherTextIsNoUuid) {
  for (const char* text :
       {"", "017f22e2", "017f22e279b07cc398c4dc0c0c07398f", "017f22e2-79b0-7cc3-98c4-dc0c0c07398g",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398f0", "017f22e2_79b0-7cc3-98c4-dc0c0c07398f",
        "{17f22e2-79b0-7cc3-98c4-dc0c0c07398}", "017f22e2-79b0-7cc3-98c40dc0c0c07398f"}) {
    EXPECT_FALSE(parse_uuid(text)) << text;
  }
}

}  // namespace
}  // namespace waybill
