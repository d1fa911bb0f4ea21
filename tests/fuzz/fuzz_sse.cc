// Event streams: the first byte says in pieces of which size the rest comes. Cut into pieces or whole, it is
// the same, and no byte is lost.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "upstream/ndjson_reader.h"
#include "upstream/sse_reader.h"

namespace {

using namespace waybill::upstream;

std::vector<std::string> read_events(std::string_view bytes, std::size_t step) {
  std::vector<std::string> told;
  SseReader reader(200);
  std::string relayed;
  const auto take_all = [&] {
    while (const auto event = reader.next()) {
      relayed.append(event->raw);
      told.push_back(std::string(event->name) + "\n" + std::string(event->data) +
                     (event->has_data ? "!" : ""));
      WAYBILL_CHECK(event->raw.size() <= 200);
    }
  };
  std::size_t given = 0;
  while (given < bytes.size()) {
    const std::size_t size = std::min(step, bytes.size() - given);
    reader.append(bytes.substr(given, size));
    given += size;
    take_all();
  }
  reader.finish();
  take_all();
  if (reader.failed()) {
    told.emplace_back("failed");
    WAYBILL_CHECK(bytes.starts_with(relayed));
  } else {
    WAYBILL_CHECK(relayed.append(reader.rest()) == bytes);
  }
  return told;
}

std::vector<std::string> read_lines(std::string_view bytes, std::size_t step) {
  std::vector<std::string> lines;
  NdjsonReader reader(100);
  const auto take_all = [&] {
    while (const auto line = reader.next()) lines.emplace_back(*line);
  };
  for (std::size_t given = 0; given < bytes.size();) {
    const std::size_t size = std::min(step, bytes.size() - given);
    std::ranges::copy(bytes.substr(given, size), reader.prepare(size).begin());
    reader.commit(size);
    given += size;
    take_all();
  }
  reader.finish();
  take_all();
  if (reader.failed()) lines.emplace_back("failed");
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t step = std::size_t{1} + data[0] % 64;
  WAYBILL_CHECK(read_events(bytes, bytes.size()) == read_events(bytes, step));
  WAYBILL_CHECK(read_lines(bytes, bytes.size()) == read_lines(bytes, step));
  return 0;
}
