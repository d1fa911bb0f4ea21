// JSON Lines of `waybill embed --input-format jsonl`.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json_text.h"
#include "base/utf8.h"
#include "cli/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const std::string decodable = waybill::decodable_json(line);
  WAYBILL_CHECK(waybill::is_valid_utf8(decodable));
  WAYBILL_CHECK(waybill::decodable_json(decodable) == decodable);
  if (const auto text = waybill::cli::text_of_json(line)) WAYBILL_CHECK(waybill::is_valid_utf8(*text));
  return 0;
}
