#include "upstream/ndjson_reader.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace waybill::upstream {
namespace {

std::vector<std::string> read(std::string_view stream, std::size_t piece, bool finish,
                              std::size_t bound = 1000) {
  NdjsonReader reader(bound);
  std::vector<std::string> lines;
  const auto take_all = [&] {
    while (const auto line = reader.next()) lines.emplace_back(*line);
  };
  while (!stream.empty()) {
    const std::size_t size = std::min(piece, stream.size());
    std::memcpy(reader.prepare(size).data(), stream.data(), size);
    reader.commit(size);
    stream.remove_prefix(size);
    take_all();
  }
  if (finish) reader.finish();
  take_all();
  if (reader.failed()) lines.emplace_back("failed");
  return lines;
}

TEST(NdjsonReader, GivesLinesHoweverTheyAreCut) {
  const std::string stream = "{\"a\":1}\n\r\n {\"b\":2}\r\n\n{\"c\":3}";
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    EXPECT_EQ(read(stream, piece, false), (std::vector<std::string>{"{\"a\":1}", "{\"b\":2}"}));
    EXPECT_EQ(read(stream, piece, true), (std::vector<std::string>{"{\"a\":1}", "{\"b\":2}", "{\"c\":3}"}));
  }
}

TEST(NdjsonReader, ALineBeyondTheBoundFails) {
  const std::string stream = "12345\n123456\n1\n";
  for (const std::size_t piece : {1U, 3U, 100U})
    EXPECT_EQ(read(stream, piece, true, 5), (std::vector<std::string>{"12345", "failed"}));
}

}  // namespace
}  // namespace waybill::upstream
