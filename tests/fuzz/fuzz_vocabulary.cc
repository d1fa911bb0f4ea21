// vocab.txt and, after a byte 0x1E, tokenizer_config.json: what is accepted tokenizes, to ids of its own.
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "embed/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace waybill::embed;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = std::min(input.find('\x1E'), size);
  const auto definition = read_vocabulary(input.substr(0, cut), input.substr(std::min(cut + 1, size)));
  if (!definition) {
    WAYBILL_CHECK(!definition.error().message.empty());
    return 0;
  }
  const Tokenizer tokenizer(*definition);
  std::vector<TokenId> ids;
  tokenizer.encode(input, 512, ids);
  for (const TokenId id : ids)
    WAYBILL_CHECK(id >= 0 && static_cast<std::size_t>(id) < tokenizer.vocabulary_size());
  return 0;
}
