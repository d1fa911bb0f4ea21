// Weights: what is accepted lies within the file and converts.
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "embed/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace waybill::embed;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const auto file = Safetensors::parse(bytes, "input");
  if (!file) {
    WAYBILL_CHECK(file.error().message.contains("input"));
    return 0;
  }
  std::size_t total = 0;
  for (const auto& [name, tensor] : file->tensors()) {
    WAYBILL_CHECK(tensor.bytes.data() >= bytes.data());
    WAYBILL_CHECK(tensor.bytes.data() + tensor.bytes.size() <= bytes.data() + bytes.size());
    total += tensor.bytes.size();
    const auto found = file->tensor(name, tensor.shape);
    WAYBILL_CHECK(found.has_value() == (tensor.dtype != DType::kOther));
    if (!found) continue;
    WAYBILL_CHECK(tensor.bytes.size() == tensor.elements() * (tensor.dtype == DType::kF32 ? 4 : 2));
    std::vector<float> values(found->elements());
    found->copy_to(values);
  }
  WAYBILL_CHECK(total <= bytes.size());  // no two tensors share a byte
  return 0;
}
