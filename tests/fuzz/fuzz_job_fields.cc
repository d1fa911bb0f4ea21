// What jobs are submitted with, piece by piece: fields, attributes, preferences. None may crash, and what is
// taken must be what it says.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/job_attributes.h"
#include "api/job_fields.h"
#include "api/prefer.h"
#include "base/check.h"
#include "base/utf8.h"
#include "upstream/json_scanner.h"

namespace {

using namespace waybill;

bool is_json(std::string_view text) {
  upstream::JsonScanner json(text);
  return !json.skip().empty() && json.at_end();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)api::parse_rfc3339(text);
  http::Request request;
  request.headers = {{"prefer", text.substr(0, size / 2)}, {"prefer", text.substr(size / 2)}};
  const api::Preference preference = api::read_preference(request);
  WAYBILL_CHECK(!preference.wait || preference.wait->count() >= 0);

  const api::JobAttributes attributes = api::read_attributes(text);
  const std::string written = api::write_attributes(attributes);
  WAYBILL_CHECK(written.empty() || is_json(written));
  WAYBILL_CHECK(api::write_attributes(api::read_attributes(written)) == written);

  // The fields are raw values of an object that has been read.
  upstream::JsonScanner json(text);
  const std::string_view raw = json.skip();
  if (raw.empty()) return 0;
  if (const auto value = api::read_text("f", raw, 100))
    WAYBILL_CHECK(!value->empty() && value->size() <= 100 && is_valid_utf8(*value));
  if (const auto value = api::read_whole("f", raw, 0, 9)) WAYBILL_CHECK(*value >= 0 && *value <= 9);
  if (const auto value = api::read_seconds("f", raw, 10)) WAYBILL_CHECK(*value > 0 && *value <= 10'000'000);
  if (const auto value = api::read_time("f", raw))
    WAYBILL_CHECK(*value < 253'402'300'800'000'000 + 86'400'000'000);
  if (api::check_metadata("f", raw)) WAYBILL_CHECK(is_valid_utf8(raw));
  return 0;
}
