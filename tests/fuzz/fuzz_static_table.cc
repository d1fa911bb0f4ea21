// Whatever the cache file of the static table holds, it is read or refused.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "base/hash.h"
#include "embed/static_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  struct Free {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };
  const std::unique_ptr<std::byte[], Free> copy(new (std::align_val_t{64}) std::byte[size + 1]);
  std::memcpy(copy.get(), data, size);
  const std::span<std::byte> bytes(copy.get(), size);
  constexpr std::size_t kHash = 24, kChecksum = 32, kHeader = 64;
  std::uint64_t model_hash = 0;
  if (size >= kHeader) {  // with the right checksum, so that more than the checksum is tried
    std::memcpy(&model_hash, bytes.data() + kHash, sizeof model_hash);
    const std::uint64_t checksum = waybill::hash64(bytes.subspan(kHeader));
    std::memcpy(bytes.data() + kChecksum, &checksum, sizeof checksum);
  }
  const auto table = waybill::embed::StaticTable::parse(bytes, model_hash);
  if (!table) return 0;
  std::vector<waybill::embed::TokenId> ids(table->vocabulary());
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<float> out(table->dim());
  table->embed(ids, out);
  return 0;
}
