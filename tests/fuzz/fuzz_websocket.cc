// WebSocket frames: the first byte says in pieces of which size the rest comes. Cut into pieces or whole, it
// is the same, and no more than one message is held.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "http/websocket_frame.h"

namespace {

using waybill::http::FrameReader;
using State = FrameReader::State;

constexpr std::size_t kMost = 300;

std::vector<std::string> read_all(std::string_view bytes, std::size_t step) {
  std::vector<std::string> told;
  FrameReader reader(kMost);
  std::string held;
  while (!bytes.empty()) {
    held.append(bytes.substr(0, step));
    bytes.remove_prefix(std::min(step, bytes.size()));
    for (;;) {
      std::size_t taken = 0;
      const State state = reader.consume(held, taken);
      WAYBILL_CHECK(taken <= held.size());
      held.erase(0, taken);
      if (state == State::kNeedMore) break;
      std::string payload = reader.take_payload();
      WAYBILL_CHECK(payload.size() <= kMost);
      WAYBILL_CHECK((state != State::kText && state != State::kClose) || waybill::is_valid_utf8(payload));
      const bool is_over = state == State::kClose || state == State::kFailed;
      told.push_back(std::to_string(static_cast<int>(state)) +
                     (is_over ? std::to_string(reader.code()) : std::string(":")) +
                     (state == State::kFailed ? std::string() : payload));
      if (is_over) return told;
    }
    WAYBILL_CHECK(held.empty());
  }
  return told;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  WAYBILL_CHECK(read_all(bytes, bytes.size()) == read_all(bytes, std::size_t{1} + data[0] % 64));
  return 0;
}
