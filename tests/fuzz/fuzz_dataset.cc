// Labelled files: the first byte chooses the format, the rest is the file.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "route/dataset.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace waybill;
  if (size == 0) return 0;
  const std::string_view contents(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto dataset =
      route::parse_dataset(contents, static_cast<route::DatasetFormat>(data[0] % 3), "input");
  if (!dataset) {
    WAYBILL_CHECK(dataset.error().message.starts_with("input:"));
    return 0;
  }
  WAYBILL_CHECK(!dataset->examples.empty());
  int line = 0;
  for (const route::Example& example : dataset->examples) {
    WAYBILL_CHECK(!example.label.empty() && is_valid_utf8(example.label) && is_valid_utf8(example.text));
    WAYBILL_CHECK(example.line > line);
    line = example.line;
  }
  (void)route::draw_shots(*dataset, 2, 1);
  return 0;
}
