#include "api/job_chunks.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace waybill::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

// What a client of server-sent events (WHATWG HTML, 9.2.6) is told: the last id, and the data.
std::vector<std::pair<std::string, std::string>> told(std::string_view stream) {
  upstream::SseReader reader;
  reader.append(stream);
  reader.finish();
  std::vector<std::pair<std::string, std::string>> events;
  std::string last;
  while (const auto event = reader.next()) {
    std::string_view raw = event->raw;
    while (!raw.empty()) {
      const std::size_t end = std::min(raw.find_first_of("\r\n"), raw.size());
      const std::string_view line = raw.substr(0, end);
      if (line == "id") last.clear();
      if (line.starts_with("id:")) last = line.substr(line.starts_with("id: ") ? 4 : 3);
      raw.remove_prefix(std::min(raw.size(), end + 1));
    }
    if (event->has_data) events.emplace_back(last, event->data);
  }
  return events;
}

// All from `place` on, read in pieces of so many bytes.
std::string given(std::string_view stored, std::string_view place, std::size_t piece) {
  JobChunks chunks(parse_chunk_place(place).value_or(ChunkPlace()));
  std::string out;
  while (chunks.next() < stored.size()) {
    store::Events read;
    read.text = stored.substr(chunks.next(), piece);
    read.next = chunks.next() + read.text.size();
    chunks.append(read, out);
  }
  chunks.finish(out);
  return out;
}

constexpr std::string_view kStored =
    "id: a\ndata: 1\n\n: nothing\n\ndata: 2\nid:b\nid\n\nid: only\n\ndata: 3\r\nid: c\r\n\r\nevent: "
    "restart\ndata: 4\n\n"
    "identity: x\ndata: 5\rid: d\r\r";

TEST(JobChunks, WhoGoesOnAfterAnyIdMissesNothingAndHasNothingTwice) {
  for (std::size_t piece = 1; piece <= kStored.size(); ++piece) {
    const auto all = told(given(kStored, "", piece));
    ASSERT_EQ(all.size(), 5U) << piece;
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_TRUE(parse_chunk_place(all[i].first)) << all[i].first;
      for (const std::size_t other : {piece, std::size_t{7}, kStored.size()}) {
        const auto rest = told(given(kStored, all[i].first, other));
        std::vector<std::string> expected, data;
        for (std::size_t k = i + 1; k < all.size(); ++k) expected.push_back(all[k].second);
        for (const auto& [id, text] : rest) data.push_back(text);
        ASSERT_EQ(data, expected) << piece << " " << all[i].first;
      }
    }
  }
}

TEST(JobChunks, OnlyIdsOfTheModelAreLeftOut) {
  const std::string out = given(kStored, "", kStored.size());
  EXPECT_THAT(out, HasSubstr("event: restart\ndata: 4\n\n"));
  EXPECT_THAT(out, HasSubstr("identity: x\n"));
  EXPECT_THAT(out, HasSubstr("data: 3\r\n\r\n"));
  EXPECT_THAT(out, Not(HasSubstr("id: a")));
  EXPECT_THAT(out, Not(HasSubstr("id:b")));
  EXPECT_THAT(told(out), ElementsAre(Pair("0.1", "1"), Pair("0.2", "2"), Pair("0.3", "3"), Pair("0.4", "4"),
                                     Pair("0.5", "5")));
}

TEST(JobChunks, APlaceIsTwoNumbers) {
  EXPECT_EQ(parse_chunk_place("17.3")->from, 17U);
  EXPECT_EQ(parse_chunk_place("17.3")->events, 3U);
  for (const char* wrong : {"", "17", "17.", ".3", "17.3x", "-1.3", "a.b", "99999999999999999999.1"})
    EXPECT_FALSE(parse_chunk_place(wrong)) << wrong;
}

}  // namespace
}  // namespace waybill::api
