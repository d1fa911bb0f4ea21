// waybill.yaml: whatever the bytes, parse() answers; what it accepts, to_yaml() writes so that it reads the
// same.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "config/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace waybill;
  config::ParseOptions options;
  options.read_file = [](const std::filesystem::path&) -> Result<std::string> { return "one\n# two\n"; };
  const auto config = config::parse({reinterpret_cast<const char*>(data), size}, options);
  if (!config) {
    WAYBILL_CHECK(!config.error().errors.empty());
    for (const config::Diagnostic& error : config.error().errors) {
      WAYBILL_CHECK(error.position.line >= 0 && is_valid_utf8(error.message));
    }
    return 0;
  }
  for (const config::Route& route : config->routes) {
    for (const config::Utterance& utterance : route.utterances) WAYBILL_CHECK(!utterance.text.empty());
  }
  const std::string yaml = to_yaml(*config, config::Secrets::kShown);
  const auto again = config::parse(yaml, options);
  WAYBILL_CHECK(again && to_yaml(*again, config::Secrets::kShown) == yaml);
  return 0;
}
