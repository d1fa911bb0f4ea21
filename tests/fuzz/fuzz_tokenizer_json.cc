// tokenizer.json: what is accepted tokenizes, to ids of its own.
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "embed/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace waybill::embed;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto definition = read_tokenizer_json(text);
  if (!definition) {
    WAYBILL_CHECK(definition.error().message.contains("tokenizer.json"));
    return 0;
  }
  const Tokenizer tokenizer(*definition);
  std::vector<TokenId> ids;
  tokenizer.encode(text, 512, ids);  // the file itself is a text with its own pieces in it
  for (const TokenId id : ids)
    WAYBILL_CHECK(id >= 0 && static_cast<std::size_t>(id) < tokenizer.vocabulary_size());
  return 0;
}
