// Saved routers of semantic-router: whatever the bytes, the import answers, and what it writes parse()
// accepts.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "config/config.h"
#include "config/import_semantic_router.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace waybill;
  const auto import =
      config::import_semantic_router({reinterpret_cast<const char*>(data), size}, "layer.json");
  if (import) {
    const auto config = config::parse(import->yaml);
    WAYBILL_CHECK(config.has_value());
    WAYBILL_CHECK(!config->routes.empty());
  }
  return 0;
}
