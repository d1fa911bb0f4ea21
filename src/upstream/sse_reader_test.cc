#include "upstream/sse_reader.h"

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "base/utf8.h"

namespace waybill::upstream {
namespace {

struct Told {
  std::string raw, data, name;
  bool has_data = false;
  friend bool operator==(const Told&, const Told&) = default;
};

struct Reading {
  std::vector<Told> events;
  std::string rest;
  bool failed = false;
  friend bool operator==(const Reading&, const Reading&) = default;
  [[nodiscard]] std::string all_bytes() const {
    std::string bytes;
    for (const Told& event : events) bytes += event.raw;
    return bytes + rest;
  }
};

// `piece(left)` says how many bytes come next.
template <class Piece>
Reading read(std::string_view stream, Piece piece, std::size_t max_event_bytes = SseReader::kMaxEventBytes) {
  SseReader reader(max_event_bytes);
  Reading reading;
  const auto take_all = [&] {
    while (const auto event = reader.next())
      reading.events.push_back(
          {std::string(event->raw), std::string(event->data), std::string(event->name), event->has_data});
  };
  while (!stream.empty()) {
    const std::size_t size = std::min<std::size_t>(piece(stream.size()), stream.size());
    reader.append(stream.substr(0, size));
    stream.remove_prefix(size);
    take_all();
  }
  reader.finish();
  take_all();
  reading.rest = reader.rest();
  reading.failed = reader.failed();
  return reading;
}

Reading read_whole(std::string_view stream) {
  return read(stream, [](std::size_t left) { return left; });
}

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

struct Case {
  std::string name, stream;
  std::vector<std::pair<std::string, std::string>> events;  // name, data
};

std::vector<Case> cases() {
  std::ifstream file(WAYBILL_SOURCE_DIR "/tests/data/sse.jsonl");
  std::vector<Case> read;
  for (std::string line; std::getline(file, line);) {
    const boost::json::value value = boost::json::parse(line);
    Case& one = read.emplace_back();
    one.name = value.at("name").as_string();
    one.stream = from_hex(std::string(value.at("hex").as_string()));
    for (const boost::json::value& event : value.at("events").as_array())
      one.events.emplace_back(event.at("event").as_string(), event.at("data").as_string());
  }
  return read;
}

TEST(SseReader, ReadsWhatTheStandardSays) {
  const std::vector<Case> all = cases();
  ASSERT_EQ(all.size(), 53U);
  for (const Case& one : all) {
    SCOPED_TRACE(one.name);
    std::vector<std::pair<std::string, std::string>> told;
    for (const Told& event : read_whole(one.stream).events) {
      if (!event.has_data) continue;
      told.emplace_back(event.name.empty() ? "message" : event.name, to_valid_utf8(event.data));
    }
    EXPECT_EQ(told, one.events);
  }
}

TEST(SseReader, DoesNotMindWhereAStreamIsCut) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    const Reading whole = read_whole(one.stream);
    EXPECT_EQ(whole.all_bytes(), one.stream);
    EXPECT_EQ(read(one.stream, [](std::size_t) { return 1U; }), whole);
    for (std::size_t cut = 1; cut < one.stream.size(); ++cut) {
      bool first = true;
      EXPECT_EQ(read(one.stream, [&](std::size_t left) { return std::exchange(first, false) ? cut : left; }),
                whole)
          << "cut at " << cut;
    }
  }
}

TEST(SseReader, GivesTheSameForRandomPiecesOfRandomStreams) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string_view parts[] = {
      "data: x",  "data:", "event: e",       ": c",          "\r",  "\n", "\r\n", "\n\n",
      "\r\n\r\n", "id: 7", "data: \xC3\xBC", "\xEF\xBB\xBF", "data"};
  for (int round = 0; round < 500; ++round) {
    std::string stream;
    for (std::size_t i = random() % 60; i > 0; --i) stream += parts[random() % std::size(parts)];
    if (random() % 10 == 0) stream += "data: " + std::string(random() % 100'000, 'y') + "\n\n";
    const Reading whole = read_whole(stream);
    EXPECT_EQ(whole.all_bytes(), stream);
    EXPECT_EQ(read(stream, [&](std::size_t) { return std::size_t{1} + random() % 40; }), whole) << stream;
  }
}

TEST(SseReader, GivesLargeEventsAndManyComments) {
  const std::string large(1'000'000, 'x');
  std::string stream = "data: " + large + "\n\n";
  for (int i = 0; i < 10'000; ++i) stream += ": keep-alive\n";
  stream += "\ndata: end\n\n";
  const Reading reading = read(stream, [](std::size_t) { return 4096U; });
  ASSERT_EQ(reading.events.size(), 3U);
  EXPECT_EQ(reading.events[0].data, large);
  EXPECT_FALSE(reading.events[1].has_data);
  EXPECT_EQ(reading.events[2].data, "end");
}

TEST(SseReader, AnEventThatIsCompleteIsGivenAtOnce) {
  SseReader reader;
  reader.append("data: 1\r\n\r");
  EXPECT_FALSE(reader.next());  // half of a line end
  reader.append("\n");
  const auto event = reader.next();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->raw, "data: 1\r\n\r\n");
  reader.append("data: 2\n\n");
  EXPECT_TRUE(reader.next());
  EXPECT_TRUE(reader.rest().empty());
}

TEST(SseReader, OneDataLineIsNotCopied) {
  SseReader reader;
  reader.append("event: e\ndata: 1\n\n");
  const auto event = reader.next();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->data.data(), event->raw.data() + 15);
}

TEST(SseReader, AnEventBeyondTheBoundFailsHoweverItComes) {
  const std::string fits = "data: " + std::string(92, 'x') + "\n\n";
  ASSERT_EQ(fits.size(), 100U);
  const std::string stream = fits + "data: " + std::string(93, 'x') + "\n\n" + fits;
  for (const std::size_t size : {std::size_t{1}, std::size_t{7}, stream.size()}) {
    const Reading reading = read(stream, [&](std::size_t) { return size; }, 100);
    EXPECT_TRUE(reading.failed) << size;
    EXPECT_EQ(reading.events.size(), 1U) << size;
  }
}

TEST(ReadWindow, GivesMemoryBackAfterALargePiece) {
  ReadWindow window;
  (void)window.prepare(1'000'000);
  window.commit(1'000'000);
  window.consume(1'000'000);
  EXPECT_GE(window.capacity(), 1'000'000U);
  (void)window.prepare(4096);
  EXPECT_EQ(window.capacity(), 4096U);
}

}  // namespace
}  // namespace waybill::upstream
